/* The output that a run has delivered so far, and the streams that follow the run. An offset counts delivered
 * (redacted) bytes of both streams together, in the order in which they came.
 *
 * The bytes are there once, however many follow: each follower has a place up to which it was told, and its events are
 * made from there when its client has read the ones before. */
#ifndef API_EVENTS_H
#define API_EVENTS_H

#include <jansson.h>

#include "base/buf.h"
#include "http/server.h"

struct events {
    unsigned references;
    bool kept;   /* so that one may begin to follow later */
    bool base64; /* data is told so */
    struct buf bytes;
    struct segment {
        size_t at, length;
        int stream;
    } * segments;
    size_t segment_count, segment_capacity;
    char held[2][4]; /* the beginning of a character whose rest has not come */
    size_t held_length[2];
    bool ended;
    struct http_text *result; /* once it has ended, unless memory was out */
    struct follower *followers;
};

/* Memory charged for each follower: its connection, and one piece of output as JSON, which takes up to six bytes for a
 * byte. With a smaller value followers hold more than the budget knows; with a larger one fewer may follow. */
#define EVENTS_FOLLOWER_BYTES ((size_t)256 << 10)

/* NULL when memory is out. */
struct events *events_new(bool base64);
void events_unref(struct events *events);

/* Begins the answer: "start", then everything delivered from the offset on. `closed` is called exactly once, when the
 * answer is out or its client has left. False when memory is out: nothing was answered, and `closed` is not called. */
bool events_follow(struct events *events, struct http_call *http, bool sse, const char *id, size_t offset,
                   void (*closed)(void *context), void *context);
void events_add(struct events *events, int stream, const void *bytes, size_t length);
/* The last event, which ends every stream; those who follow later are told it too. NULL: memory was out. */
void events_end(struct events *events, struct http_text *result);
/* Every follower that is there is told that a run which had to wait is under way. */
void events_running(struct events *events);
/* Every follower that has read everything is told that its stream lives. */
void events_ping(struct events *events);
/* Bytes of memory. */
size_t events_bytes(const struct events *events);

#endif
