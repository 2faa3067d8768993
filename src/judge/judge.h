/* Tests as a request: one program against many cases, or a test file in the language's own framework. Blocks the
 * calling thread; the command line and the daemon's workers call it. */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H

#include <cordon/engine.h>
#include <cordon/run.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

struct judge_options {
    unsigned parallel;         /* cases at a time; 0: one */
    const atomic_bool *cancel; /* ends the run under way, and those to come are not started; may be NULL */
    /* Asked several times a second, from the calling thread, whether to go on; 0 cancels. May be NULL. */
    int (*go_on)(void *context);
    /* Called after each case, from the calling thread: its number from 0, and how many there are. */
    void (*on_case)(void *context, size_t index, size_t total, const json_t *one);
    void *context;
    /* What a case printed is compared as it is, but shown through this; may be NULL. */
    const cordon_filter *filter;
    /* Sees the request of every run, whoever's limits it has, before it is started; may lower them. May be NULL. */
    void (*bound)(const void *context, cordon_request *request);
    const void *bound_context;
};

/* `request` is a Request object whose `tests` is set. The result is that of the first case that did not pass, or of the
 * last, and has what became of all of them. `options` may be NULL. */
int judge_result(cordon_engine *engine, const json_t *request, const struct judge_options *options,
                 cordon_result **result, cordon_error *err);
/* The same, as JSON. */
int judge_run(cordon_engine *engine, const json_t *request, const struct judge_options *options, json_t **result,
              cordon_error *err);
/* Whether this is a request for tests: says what is wrong with `tests` before anything runs. */
int judge_check(const json_t *request, cordon_error *err);

/* Whether the caller may ask for the end while the tests run, and whether it has. */
static inline bool judge_can_stop(const struct judge_options *options)
{
    return options && (options->cancel || options->go_on);
}

static inline bool judge_is_stopped(const struct judge_options *options)
{
    return (options->cancel && atomic_load(options->cancel)) || (options->go_on && !options->go_on(options->context));
}

#endif
