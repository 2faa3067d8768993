/* The daemon's event loop: descriptors, timers, and something to do before each sleep. One thread. */
#ifndef SERVICE_LOOP_H
#define SERVICE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_watch {
    int fd;
    void (*ready)(void *context, uint32_t events);
    void *context;
};

struct loop_timer {
    struct loop_timer *next;
    uint64_t at_us; /* 0: off */
    void (*expired)(void *context);
    void *context;
};

struct loop *loop_new(void);
void loop_free(struct loop *loop);

/* The watch belongs to the caller and stays until it is forgotten; 0, or -1 with errno. */
int loop_watch(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events);
/* Closes nothing. Safe within a handler, also for a watch whose event is still to come in this round. */
void loop_forget(struct loop *loop, struct loop_watch *watch);
/* Known to the loop from its first setting on. 0 turns it off. */
void loop_set_timer(struct loop *loop, struct loop_timer *timer, uint64_t at_us);
void loop_drop_timer(struct loop *loop, struct loop_timer *timer);
/* Called before each sleep, and between a round's events and its timers; returns how long a sleep may last at most, in
 * milliseconds, or -1. */
void loop_set_hook(struct loop *loop, int (*before_sleep)(void *context), void *context);

void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* How long the loop was away from waiting, in processor time of its thread: everybody waits for that. */
#define LOOP_LONG_US 50000
struct loop_load {
    uint64_t turns, busy_us, longest_us;
    uint64_t long_turns; /* longer than LOOP_LONG_US */
};
struct loop_load loop_load(const struct loop *loop);

#endif
