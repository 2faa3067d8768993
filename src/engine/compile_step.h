/* A run's compile step and the cache of such steps. */
#ifndef ENGINE_COMPILE_STEP_H
#define ENGINE_COMPILE_STEP_H

#include "engine/compile_cache.h"

/* The key of the step that was prepared; 0, or -1 when it has none and must be made. */
int compile_step_key(const struct cordon_engine *engine, const struct prepared *prepared,
                     const struct prepared_step *step, struct compile_key *key);
/* What the step left an earlier time; NULL when it must be made. The outcome is the caller's to free. */
struct outcome *compile_step_find(const struct cordon_engine *engine, const struct compile_key *key,
                                  const struct limits *limits, struct collected *made);
/* A copy of a step's outcome, for another run that uses what it left. NULL when memory is out. */
struct outcome *compile_step_again(const struct outcome *outcome);

#endif
