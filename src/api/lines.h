/* Output as it is told to followers: a line in one piece where that can be. A program that prints "text" and its
 * newline in two writes, as Python's print() does without a buffer, is told of once. */
#ifndef API_LINES_H
#define API_LINES_H

#include <stddef.h>

#include "base/buf.h"
#include "service/loop.h"

/* The beginning of a line waits so long for the rest. Longer, and a prompt without newline is seen late; shorter, and
 * more lines are told in pieces. */
#define LINES_WAIT_MS 10
/* A beginning that is longer is told at once, so that what waits is bounded. */
#define LINES_HELD_MAX ((size_t)16 << 10)

struct lines {
    struct loop *loop;
    void (*tell)(void *context, int stream, const void *bytes, size_t length);
    void *context;
    struct buf held[2]; /* of stdout and stderr; one at a time, so that the order of the streams stays */
    struct loop_timer timer;
};

void lines_init(struct lines *lines, struct loop *loop,
                void (*tell)(void *context, int stream, const void *bytes, size_t length), void *context);
void lines_add(struct lines *lines, int stream, const void *bytes, size_t length);
/* Tells what waits; nothing comes any more. Does nothing the second time. */
void lines_end(struct lines *lines);

#endif
