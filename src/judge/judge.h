/* Tests as a request: one program against many cases, or a test file in the language's own framework. Blocks the
 * calling thread; the command line and the daemon's workers call it. */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H

#include <cordon/engine.h>
#include <cordon/run.h>
#include <jansson.h>
#include <stdatomic.h>

struct judge_options {
    unsigned parallel;         /* cases at a time; 0: one */
    const atomic_bool *cancel; /* ends the run under way, and those to come are not started; may be NULL */
    /* Called after each case, from the calling thread: its number from 0, and how many there are. */
    void (*on_case)(void *context, size_t index, size_t total, const json_t *one);
    void *context;
    /* What a case printed is compared as it is, but shown through this; may be NULL. */
    const cordon_filter *filter;
    /* Sees the request of every run, whoever's limits it has, before it is started; may lower them. May be NULL. */
    void (*bound)(const void *context, cordon_request *request);
    const void *bound_context;
};

/* `request` is a Request object whose `tests` is set. The answer is a Result whose `tests` is filled: that of the first
 * case that did not pass, or of the last. `options` may be NULL. */
int judge_run(cordon_engine *engine, const json_t *request, const struct judge_options *options, json_t **result,
              cordon_error *err);
/* Whether this is a request for tests: says what is wrong with `tests` before anything runs. */
int judge_check(const json_t *request, cordon_error *err);

#endif
