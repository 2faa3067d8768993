/* One compile step for many runs, whether or not compiled programs are kept: the judge runs a program once for each of
 * its cases. */
#ifndef ENGINE_COMPILED_H
#define ENGINE_COMPILED_H

#include <cordon/run.h>

/* Starts a run that ends after the compile step. Its result is that of a program that was not run: `compile_error`, or
 * `ok` without output. A language that is not compiled is CORDON_ESTATE. */
int run_compile(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                cordon_run **run, cordon_error *err);
/* Starts the program with what the compile step of `compiled` left; it must have ended well, and is borrowed until the
 * run is freed. Any number of threads may do so at once. */
int run_start_compiled(const cordon_run *compiled, const cordon_request *request, const cordon_run_options *options,
                       cordon_run **run, cordon_error *err);

#endif
