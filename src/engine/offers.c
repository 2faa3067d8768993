/* Owns the offers that the warden made: taken from its socket when a run looks for one. */
#include "engine/offers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* A program that runs for longer than this is known to the warden. */
#define RING_US 1000

void offer_free(struct offer *offer)
{
    for (size_t i = 0; offer && i < offer->fd_count; i++)
        cleanup_close(&offer->fds[i]);
    free(offer);
}

/* The next from the socket; NULL when there is none. */
static struct offer *receive(struct cordon_engine *engine)
{
    struct event_offer event;
    struct offer *offer = calloc(1, sizeof *offer);
    ssize_t n;
    if (!offer)
        return NULL;
    do /* one that found no room for its descriptors is lost, and its cell with it */
        n = fd_receive_now(engine->socket, &event, sizeof event, offer->fds, OFFER_MAX, &offer->fd_count);
    while (n < 0 && errno == EMSGSIZE);
    if (n != sizeof event || event.type != EVENT_OFFER || offer->fd_count < OFFER_STREAMS + STARTED_VALUE) {
        offer_free(offer);
        return NULL;
    }
    offer->pool = event.pool;
    memcpy(offer->limit, event.limit, sizeof offer->limit);
    return offer;
}

/* Nothing is said of it but its end. */
static bool has_ended(const struct offer *offer)
{
    char byte;
    return recv(offer->fds[OFFER_RUN], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static bool fits(const struct offer *offer, uint64_t pool, const struct limits *limits)
{
    return offer->pool == pool && !memcmp(offer->limit, limits->value, sizeof offer->limit);
}

struct offer *offer_take(struct cordon_engine *engine, uint64_t pool, const struct limits *limits)
{
    struct offer *offer, *found = NULL;
    pthread_mutex_lock(&engine->pools_lock);
    for (struct offer **link = &engine->offers; (offer = *link) && !found;) {
        bool fitting = fits(offer, pool, limits);
        if (!fitting && !has_ended(offer)) {
            link = &offer->next;
            continue;
        }
        *link = offer->next;
        if (fitting)
            found = offer;
        else
            offer_free(offer);
    }
    /* All of them: while descriptors lie in a socket, the kernel looks for lost ones whenever one is closed. */
    while ((offer = receive(engine)))
        if (!found && fits(offer, pool, limits))
            found = offer;
        else {
            offer->next = engine->offers;
            engine->offers = offer;
        }
    pthread_mutex_unlock(&engine->pools_lock);
    return found;
}

static void set_timer(const struct bell *bell, uint64_t at_us)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_us / 1000000), .tv_nsec = (long)(at_us % 1000000) * 1000}};
    timerfd_settime(bell->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void offers_ring(struct cordon_engine *engine)
{
    struct bell *bell = &engine->bell;
    pthread_mutex_lock(&bell->lock);
    set_timer(bell, 1); /* long ago */
    bell->due_us = 0;
    pthread_mutex_unlock(&bell->lock);
}

/* One that is set already does for everybody who spoke before it is due. */
void offers_ring_soon(struct cordon_engine *engine)
{
    struct bell *bell = &engine->bell;
    pthread_mutex_lock(&bell->lock);
    uint64_t now = clock_us();
    if (bell->due_us <= now) {
        bell->due_us = now + RING_US;
        set_timer(bell, bell->due_us);
    }
    pthread_mutex_unlock(&bell->lock);
}

void offers_free(struct cordon_engine *engine)
{
    while (engine->offers) {
        struct offer *offer = engine->offers;
        engine->offers = offer->next;
        offer_free(offer);
    }
}
