/* The warden's event loop: epoll, and one scan of the cells for the next deadline. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/warden.h"

#define EVENTS_MAX 32

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

int loop_release(struct warden *warden, struct watch *watch)
{
    int fd = watch->fd;
    if (fd >= 0)
        epoll_ctl(warden->epoll, EPOLL_CTL_DEL, fd, NULL);
    watch->fd = -1;
    return fd;
}

void loop_move(struct warden *warden, struct watch *from, struct watch *to, struct cell *cell)
{
    to->fd = from->fd;
    to->cell = cell;
    from->fd = -1;
    loop_rearm(warden, to, true);
}

bool loop_has_input(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLIN;
}

/* How long to sleep; NULL: until something happens. */
static const struct timespec *wait_time(const struct warden *warden, struct timespec *time)
{
    uint64_t next = UINT64_MAX;
    for (const struct cell *cell = warden->cells; cell; cell = cell->next) {
        uint64_t tick = cell_next_tick(cell);
        if (tick < next)
            next = tick;
    }
    uint64_t others[] = {scout_next_tick(warden), pool_next_tick(warden)};
    for (unsigned i = 0; i < ARRAY_LEN(others); i++)
        if (others[i] < next)
            next = others[i];
    if (next == UINT64_MAX)
        return NULL;
    uint64_t now = clock_us(), left = next <= now ? 0 : next - now;
    *time = (struct timespec){(time_t)(left / 1000000), (long)(left % 1000000) * 1000};
    return time;
}

static int wait_for_events(const struct warden *warden, struct epoll_event events[EVENTS_MAX])
{
    struct timespec time;
    const struct timespec *until = wait_time(warden, &time);
    int count = epoll_pwait2(warden->epoll, events, EVENTS_MAX, until, NULL);
    if (count >= 0 || errno != ENOSYS) /* before 5.11 */
        return count;
    return epoll_wait(warden->epoll, events, EVENTS_MAX,
                      until ? (int)(until->tv_sec * 1000 + (until->tv_nsec + 999999) / 1000000) : -1);
}

void loop_run(struct warden *warden)
{
    struct epoll_event events[EVENTS_MAX];
    while (!warden->leaving || warden->cells) {
        int count = wait_for_events(warden, events);
        if (count < 0 && errno != EINTR)
            return;
        /* Deadlines first: a flood of events must not delay a kill. */
        uint64_t now = clock_us();
        if (now >= pool_burst_ends(warden)) /* unless somebody has begun without the warden */
            offer_hear(warden);
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
        pool_tick(warden, clock_us());
    }
}
