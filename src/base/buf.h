/* A growable byte buffer. Appending never aborts: once memory runs out the buffer is `failed`, further appends do
 * nothing, and the caller checks once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated once anything was appended */
    size_t length;
    size_t capacity;
    bool failed;
};

void buf_append(struct buf *buf, const void *bytes, size_t length);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text so far; "" when empty. */
const char *buf_text(const struct buf *buf);
void buf_free(struct buf *buf);

#define auto_buf __attribute__((cleanup(buf_free)))

#endif
