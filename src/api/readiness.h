/* What the daemon found out about itself: whether cells can be made with the settings that are in force, and whether
 * each installed language runs in one. */
#ifndef API_READINESS_H
#define API_READINESS_H

#include <cordon/error.h>

#include "api/api.h"

/* Proves the isolation level at once. An error is only that there is no memory: what cannot be run is a finding. */
int readiness_open(struct api *api, cordon_error *err);
/* Proves the languages in a thread, one after the other, each when no run is under way. */
void readiness_start(struct api *api);
/* Settings have changed: the isolation level is proven anew. */
void readiness_again(struct api *api);
/* What is under way is given up; to be called before the threads are closed. */
void readiness_stop(struct api *api);
void readiness_free(struct api *api);

/* NULL when a run with the daemon's settings can be made; else why not, with the fix as hint. */
const cordon_error *readiness_refusal(const struct api *api);
/* The answer of /readyz while runs can be made. */
json_t *readiness_json(const struct api *api);

#endif
