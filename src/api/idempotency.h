/* Idempotency-Key: the same request sent twice is one run. Remembered for ten minutes, a bounded number of them. */
#ifndef API_IDEMPOTENCY_H
#define API_IDEMPOTENCY_H

#include "api/api.h"

enum remembered_as { REMEMBERED_NOT, REMEMBERED_SAME, REMEMBERED_OTHER };

/* SAME: `id` is the run of the first request. OTHER: the key was used for another request, and the call is answered. */
enum remembered_as idempotency_find(struct call *call, char id[ID_BYTES + 1]);
/* Whether the call has such a key. */
bool idempotency_remember(struct call *call, const char *id);
/* The run came to nothing, so that trying again is a new one. */
void idempotency_forget(struct api *api, const char *id);
void idempotency_tick(struct api *api);
void idempotency_free(struct api *api);

#endif
