/* Ways to run that only this project's own callers use: one compile step for many runs (the judge runs a program once
 * for each of its cases), and runs that wake nobody before they end. */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include <cordon/run.h>

#include "engine/account.h"

/* Starts a run that ends after the compile step. Its result is that of a program that was not run: `compile_error`, or
 * `ok` without output. A language that is not compiled is CORDON_ESTATE. */
int run_compile(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                cordon_run **run, cordon_error *err);
/* Starts the program with what the compile step of `compiled` left; it must have ended well, and is borrowed until the
 * run is freed. Any number of threads may do so at once. */
int run_start_compiled(const cordon_run *compiled, const cordon_request *request, const cordon_run_options *options,
                       cordon_run **run, cordon_error *err);

/* Like cordon_run_start(), but what the program prints stays in its pipe until it ends. After RUN_QUIET_MS the caller
 * sees to it that it is taken: a pipe holds only so much. */
#define RUN_QUIET_MS 2
int run_start_quietly(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                      cordon_run **run, cordon_error *err);
/* From here on output is taken as it comes. */
void run_watch_output(cordon_run *run);

/* cordon_run_dispatch() for a loop that must not be away for long: RUN_LONG when something that may take long comes
 * next. Then run_advance() does it, in any thread, and returns what cordon_run_dispatch() would have. Until it has,
 * nothing but cordon_run_cancel() may be called for this run. */
#define RUN_LONG 2
int run_dispatch(cordon_run *run, cordon_error *err);
int run_advance(cordon_run *run, cordon_error *err);

/* What the run's cells used so far, also when the run failed. Lives as long as the run. */
const struct account *run_account(const cordon_run *run);

#endif
