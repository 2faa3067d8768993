/* Tests as a request: one program against many cases, or a test file in the language's own framework. Blocks the
 * calling thread; the command line and the daemon's workers call it. */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H

#include <cordon/engine.h>
#include <cordon/run.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/account.h"
#include "plan/limits.h"

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
    /* Judges the limits that a program is asked to have, when the tests are checked: refuses those above a ceiling, or
     * tells the limits in effect. May be NULL. */
    int (*admit)(const void *context, cordon_request *request, struct limits *limits, cordon_error *err);
    /* Sees the request of every run, whoever's limits it has, before it is started; may lower them. May be NULL. */
    void (*bound)(const void *context, cordon_request *request);
    const void *policy; /* the context of both */
    /* Set to what every cell used, checkers, interactors and compile steps included, also on failure. May be NULL. */
    struct account *account;
};

/* What the cells of tests may have at the same time, at most; LIMIT_UNLIMITED where there is no bound. */
struct judge_needs {
    int64_t memory_bytes, processes;
    int64_t output_bytes;   /* of each stream, that the result keeps */
    int64_t captured_bytes; /* of all streams of one case while it is judged */
};

/* `request` is a Request object whose `tests` is set. The result is that of the first case that did not pass, or of the
 * last, and has what became of all of them. `options` may be NULL. */
int judge_result(cordon_engine *engine, const json_t *request, const struct judge_options *options,
                 cordon_result **result, cordon_error *err);
/* The same, as JSON. */
int judge_run(cordon_engine *engine, const json_t *request, const struct judge_options *options, json_t **result,
              cordon_error *err);
/* Whether this is a request for tests: says what is wrong with `tests` before anything runs. `options` and `needs` may
 * be NULL. */
int judge_check(const json_t *request, const struct judge_options *options, struct judge_needs *needs,
                cordon_error *err);

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
