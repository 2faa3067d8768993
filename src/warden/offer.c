/* Offers: a waiting cell given to the library ahead of any order. A run then goes straight to its program, while the
 * warden learns of it beside. Once taken it is a run like any other. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "warden/pool.h"

int offer_make(struct warden *warden, struct cell *cell)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    cell->run.fd = pair[0];
    cell->by_bell = true;
    auto_close int theirs = pair[1];
    struct event_offer event = {.type = EVENT_OFFER, .pool = cell->pool->key};
    memcpy(event.limit, cell->limit, sizeof event.limit);
    int fds[OFFER_MAX] = {[OFFER_RUN] = theirs, [OFFER_PROGRAM] = cell->talk.fd};
    size_t count = OFFER_STREAMS + (cell->near[STARTED_VALUE] >= 0 ? STARTED_MAX : STARTED_VALUE);
    memcpy(fds + OFFER_STREAMS, cell->near, sizeof cell->near);
    /* A library that takes no offers lets them pile up: then there are enough of them. */
    if (fd_send_now(warden->engine.fd, &event, sizeof event, fds, count) < 0) {
        cleanup_close(&cell->run.fd);
        cell->run.fd = -1;
        cell->by_bell = false;
        return -1;
    }
    cell->offered = true;
    streams_close(cell);
    loop_forget(warden, &cell->talk); /* the library's alone now */
    return 0;
}

/* The program has its code by now, and may have run for a while: it began when the word was sent. */
void offer_taken(struct warden *warden, struct cell *cell, const struct run_command *command)
{
    uint64_t now = clock_us(), began = command->sent_us;
    bool told = began <= now && began >= command->accepted_us && now - began < 1000000;
    cell->offered = false;
    cell->ordered = true;
    cell->accepted_us = command->accepted_us;
    cell->files_read = command->files_read;
    memcpy(cell->plan.limit, cell->limit, sizeof cell->limit);
    cell->pool->served++;
    cell->pool->used_us = now;
    cell_running(warden, cell, told ? began : now);
}

void offer_settle(struct warden *warden, struct cell *cell)
{
    if (cell->offered && cell->phase == PHASE_WAITING)
        cell_listen(warden, cell);
}

void offer_hear(struct warden *warden)
{
    for (struct cell *cell = warden->cells; cell; cell = cell->next)
        while (cell->by_bell && cell->run.fd >= 0 && cell->phase != PHASE_ENDED && cell_listen(warden, cell))
            ; /* there may be more than one word */
}

static void on_bell(struct warden *warden, struct cell *none, uint32_t events)
{
    (void)none;
    (void)events;
    uint64_t count;
    (void)!read(warden->bell.fd, &count, sizeof count);
    offer_hear(warden);
}

void offer_hang_bell(struct warden *warden, int bell)
{
    if (loop_watch(warden, &warden->bell, bell, NULL, on_bell) == 0)
        return;
    close(bell);
    warden->bell.fd = -1;
}
