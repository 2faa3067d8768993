/* Which waiting cells can serve a step of a run; see src/warden/pool.c for the cells themselves. */
#ifndef ENGINE_WARM_H
#define ENGINE_WARM_H

#include "engine/prepare.h"

/* Names the pools in the step's plan, and tells the warden of those it does not know yet. Nothing on an engine that is
 * not warm. */
int warm_choose(struct cordon_engine *engine, const struct prepared *prepared, bool compile, struct prepared_step *step,
                cordon_error *err);
/* From here on its runs are served by waiting cells where they can be. */
int warm_enable(struct cordon_engine *engine);
void warm_free(struct cordon_engine *engine);

#endif
