/* Forking a started interpreter into slots. */
#ifndef ZYGOTE_SERVE_H
#define ZYGOTE_SERVE_H

#include <stdbool.h>

/* Answers requests on the socket. Returns 0 in every process that was forked, confined already; and 1 in the zygote
 * when it should leave. */
int zygote_serve(int socket);

/* In a process that was forked: its program has come, and there is no time to warm up. */
extern bool zygote_is_awaited;

#endif
