/* Waiting cells that the warden gave ahead of any order; see src/warden/offer.c. */
#ifndef ENGINE_OFFERS_H
#define ENGINE_OFFERS_H

#include "engine/engine.h"
#include "plan/limits.h"
#include "warden/protocol.h"

struct offer {
    struct offer *next;
    uint64_t pool;
    int64_t limit[LIMIT_COUNT];
    int fds[OFFER_MAX];
    size_t fd_count;
};

/* One of this pool with just these limits, now the caller's; NULL when there is none. */
struct offer *offer_take(struct cordon_engine *engine, uint64_t pool, const struct limits *limits);
/* Closes what is left of it. */
void offer_free(struct offer *offer);
/* Has the warden look at the sockets of what was taken: at once, or before long. Most programs have ended by then, and
 * it has looked for that reason. */
void offers_ring(struct cordon_engine *engine);
void offers_ring_soon(struct cordon_engine *engine);

void offers_free(struct cordon_engine *engine);

#endif
