/* What a language's compiler would make anew in each cell (a standard library, say), made once by a program of ours and
 * mounted read-only where programs are compiled. No program of a request ever writes to it. */
#ifndef ENGINE_PREBUILD_H
#define ENGINE_PREBUILD_H

#include "engine/engine.h"

/* The directory to be mounted, or -1 when the language has none or it has not been made here. */
int prebuild_open(const struct cordon_engine *engine, const struct manifest *manifest);

#endif
