/* The warden's event loop: epoll, and one scan of the cells for the next deadline. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "warden/warden.h"

int loop_watch(struct warden *warden, struct watch *watch, int fd, struct cell *cell,
               void (*ready)(struct warden *, struct cell *, uint32_t))
{
    *watch = (struct watch){.fd = fd, .ready = ready, .cell = cell};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    if (fd < 0 || epoll_ctl(warden->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return -1;
    return 0;
}

void loop_watch_priority(struct warden *warden, struct watch *watch)
{
    struct epoll_event event = {.events = EPOLLPRI, .data.ptr = watch};
    epoll_ctl(warden->epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

void loop_rearm(struct warden *warden, struct watch *watch, bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = watch};
    epoll_ctl(warden->epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

void loop_forget(struct warden *warden, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    epoll_ctl(warden->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    close(watch->fd);
    watch->fd = -1;
}

bool loop_has_input(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLIN;
}

static int wait_ms(const struct warden *warden)
{
    uint64_t next = UINT64_MAX;
    for (const struct cell *cell = warden->cells; cell; cell = cell->next) {
        uint64_t tick = cell_next_tick(cell);
        if (tick < next)
            next = tick;
    }
    uint64_t scout = scout_next_tick(warden);
    if (scout < next)
        next = scout;
    if (next == UINT64_MAX)
        return -1;
    uint64_t now = clock_us();
    return next <= now ? 0 : (int)((next - now + 999) / 1000);
}

void loop_run(struct warden *warden)
{
    struct epoll_event events[32];
    while (!warden->leaving || warden->cells) {
        int count = epoll_wait(warden->epoll, events, 32, wait_ms(warden));
        if (count < 0 && errno != EINTR)
            return;
        /* Deadlines first: a flood of events must not delay a kill. */
        uint64_t now = clock_us();
        for (struct cell *cell = warden->cells, *next; cell; cell = next) {
            next = cell->next;
            cell_tick(warden, cell, now);
        }
        scout_tick(warden, now);
        for (int i = 0; i < count; i++) {
            struct watch *watch = events[i].data.ptr;
            if (watch->fd >= 0) /* not forgotten by an earlier event of this round */
                watch->ready(warden, watch->cell, events[i].events);
        }
        /* Cells are freed here only, so that no event of a round points into freed memory. */
        cell_collect(warden);
    }
}
