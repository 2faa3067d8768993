/* What a run has delivered so far, and those who follow it. An offset counts delivered (redacted) bytes of both streams
 * together, in the order in which they came. */
#ifndef API_EVENTS_H
#define API_EVENTS_H

#include <jansson.h>

#include "base/buf.h"
#include "http/server.h"

struct subscriber {
    struct subscriber *next;
    struct events *events;
    struct http_call *http;
    bool sse;
    size_t from;                 /* it has what was delivered before */
    void (*left)(void *context); /* its client did; the subscriber is gone by then */
    void *context;
};

struct events {
    bool kept;   /* so that one may begin to follow later */
    bool base64; /* data is told so */
    struct buf bytes;
    struct segment {
        size_t at, length;
        int stream;
    } * segments;
    size_t segment_count, segment_capacity;
    size_t total;
    char held[2][4]; /* the beginning of a character whose rest has not come */
    size_t held_length[2];
    struct subscriber *subscribers;
};

/* Begins the answer: "start", then everything delivered from the offset on. False when memory is out. */
bool events_follow(struct events *events, struct http_call *http, bool sse, const char *id, size_t offset,
                   void (*left)(void *context), void *context);
void events_add(struct events *events, int stream, const void *bytes, size_t length);
/* The last event, which ends every stream. */
void events_end(struct events *events, const char *result);
/* Whoever follows already is told that a run which had to wait is under way. */
void events_status(struct events *events, const char *state);
void events_ping(struct events *events);
void events_free(struct events *events);

#endif
