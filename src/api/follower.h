/* One that follows a run's events. Inside events.c and follower.c only. */
#ifndef API_FOLLOWER_H
#define API_FOLLOWER_H

#include "api/events.h"

struct follower {
    struct follower *next, **link;
    struct events *events; /* a reference */
    struct http_call *http;
    bool sse;
    char id[40];
    bool started;         /* was told "start" */
    bool running, pinged; /* has yet to be told so */
    size_t at;            /* an offset: it was told what was delivered before */
    size_t segment;       /* the segment of the last place */
    bool ending;          /* is being told the result */
    size_t result_at;     /* so many bytes of it were told */
    void (*closed)(void *context);
    void *context;
};

enum http_part follower_next(void *context, struct buf *part);

#endif
