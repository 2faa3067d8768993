/* What `cordon run` does beside running: nothing in `cordon` itself, while cordon-service sanitizes output and records
 * the run. Each executable links its own. */
#ifndef CLI_RUN_HOOKS_H
#define CLI_RUN_HOOKS_H

#include <cordon/run.h>

#include "cli/run_flags.h"

/* Before the start: may set the options' filter. */
int run_hook_begin(const struct run_flags *flags, cordon_run_options *options, cordon_error *err);
/* After the end, before the result is told. */
int run_hook_end(const struct run_flags *flags, cordon_result *result, cordon_error *err);
/* Whether these arguments ask for what only cordon-service can do. */
bool run_needs_service(int argc, char **argv);

#endif
