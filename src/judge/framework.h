/* Tests written for a framework: files put beside the program's, and one run that the framework reports on. */
#ifndef JUDGE_FRAMEWORK_H
#define JUDGE_FRAMEWORK_H

#include "judge/judge.h"
#include "judge/report.h"
#include "judge/spec.h"

struct framework;

/* The framework of this name, if it fits the language of the request (an id or alias is only known to an engine, which
 * may be NULL). */
int framework_find(cordon_engine *engine, const json_t *request, const struct spec *spec,
                   const struct framework **framework, cordon_error *err);
/* `report` has what it said. The result is that of the run, which is freed by the caller. */
int framework_run(cordon_engine *engine, const struct framework *framework, const json_t *request,
                  const struct spec *spec, const struct judge_options *options, cordon_result **result,
                  struct report *report, cordon_error *err);
/* Makes the request of that run, but for what only an engine can tell: says what is wrong with it. */
int framework_check(const struct framework *framework, const json_t *request, const struct spec *spec,
                    const struct judge_options *options, struct judge_needs *needs, cordon_error *err);

/* Reads every runner, so that none is read from a file later. */
int frameworks_read_ahead(const cordon_engine *engine, cordon_error *err);

#endif
