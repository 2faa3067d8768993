/* Captured output of one stream: the first three quarters and the last quarter of a cap, the rest counted and dropped.
 * Memory never exceeds the cap, however much is fed. */
#ifndef OUTPUT_CAPTURE_H
#define OUTPUT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture {
    size_t cap;
    uint64_t total; /* bytes fed */
    char *head;
    size_t head_length, head_capacity;
    char *tail; /* ring, allocated when the head is full */
    size_t tail_at;
    uint64_t tail_total; /* bytes that went to the tail */
    bool failed;         /* memory ran out: what was kept stays valid */
};

/* cap SIZE_MAX keeps everything. */
void capture_init(struct capture *capture, size_t cap);
/* Returns how many of these bytes belong to the head, i.e. may be streamed live. */
size_t capture_feed(struct capture *capture, const void *bytes, size_t length);
bool capture_truncated(const struct capture *capture);
/* Head, "[cordon: N bytes cut]" on a line of its own, tail; or just the bytes when nothing was cut. NUL-terminated;
 * `cut_at` (may be NULL) is where the marker begins, or the length when nothing was cut. NULL when memory is out. */
char *capture_text(const struct capture *capture, size_t *length, size_t *cut_at);
void capture_free(struct capture *capture);

#endif
