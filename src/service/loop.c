/* Owns the waiting: epoll, a short list of timers, and the round in which forgotten watches are skipped. */
#include "service/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define EVENTS_MAX 64

struct loop {
    int epoll;
    bool stopped;
    struct loop_timer *timers;
    int (*before_sleep)(void *context);
    void *hook_context;
    struct epoll_event events[EVENTS_MAX];
    int event_count, event_at;
    struct loop_load load;
};

/* What this thread has used of a processor: unlike the clock, it does not count the time of others on a busy machine.
 */
static uint64_t own_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void count_turn(struct loop *loop, uint64_t us)
{
    struct loop_load *load = &loop->load;
    load->turns++;
    load->busy_us += us;
    if (us > load->longest_us)
        load->longest_us = us;
    if (us > LOOP_LONG_US)
        load->long_turns++;
}

struct loop_load loop_load(const struct loop *loop)
{
    return loop->load;
}

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop && (loop->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        free(loop);
        return NULL;
    }
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    close(loop->epoll);
    free(loop);
}

int loop_watch(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    watch->fd = fd;
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event);
}

void loop_forget(struct loop *loop, struct loop_watch *watch)
{
    if (watch->fd < 0)
        return;
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->fd = -1;
    for (int i = loop->event_at; i < loop->event_count; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
}

void loop_set_timer(struct loop *loop, struct loop_timer *timer, uint64_t at_us)
{
    timer->at_us = at_us;
    for (struct loop_timer *known = loop->timers; known; known = known->next)
        if (known == timer)
            return;
    timer->next = loop->timers;
    loop->timers = timer;
}

void loop_drop_timer(struct loop *loop, struct loop_timer *timer)
{
    for (struct loop_timer **link = &loop->timers; *link; link = &(*link)->next)
        if (*link == timer) {
            *link = timer->next;
            break;
        }
    timer->at_us = 0;
}

void loop_set_hook(struct loop *loop, int (*before_sleep)(void *context), void *context)
{
    loop->before_sleep = before_sleep;
    loop->hook_context = context;
}

static void run_timers(struct loop *loop)
{
    uint64_t now = clock_us();
    for (struct loop_timer *timer = loop->timers; timer;) {
        if (!timer->at_us || timer->at_us > now) {
            timer = timer->next;
            continue;
        }
        timer->at_us = 0;
        timer->expired(timer->context);
        timer = loop->timers; /* it may have dropped any of them */
    }
}

static int wait_ms(struct loop *loop)
{
    int most = loop->before_sleep ? loop->before_sleep(loop->hook_context) : -1;
    uint64_t now = clock_us();
    for (const struct loop_timer *timer = loop->timers; timer; timer = timer->next) {
        if (!timer->at_us)
            continue;
        uint64_t left = timer->at_us <= now ? 0 : (timer->at_us - now + 999) / 1000;
        if (most < 0 || left < (uint64_t)most)
            most = (int)left;
    }
    return most;
}

void loop_run(struct loop *loop)
{
    loop->stopped = false;
    for (uint64_t began = own_us(); !loop->stopped;) {
        int timeout = wait_ms(loop);
        if (loop->stopped)
            return;
        uint64_t now = own_us();
        count_turn(loop, now - began);
        began = now;
        loop->event_count = epoll_wait(loop->epoll, loop->events, EVENTS_MAX, timeout);
        if (loop->event_count < 0 && errno != EINTR)
            return;
        for (loop->event_at = 0; loop->event_at < loop->event_count;) {
            struct epoll_event event = loop->events[loop->event_at++];
            struct loop_watch *watch = event.data.ptr;
            if (watch)
                watch->ready(watch->context, event.events);
        }
        loop->event_count = 0;
        /* What the events brought about goes out before anything that can wait. */
        if (loop->before_sleep)
            loop->before_sleep(loop->hook_context);
        run_timers(loop);
    }
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
}
