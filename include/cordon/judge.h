/* Tests: one program against many cases, or a test file in the language's own framework.
 *
 * Each case runs in a fresh cell, and its output is compared outside. docs/TESTS.md tells what a case can be. */
#ifndef CORDON_JUDGE_H
#define CORDON_JUDGE_H

#include <cordon/engine.h>
#include <cordon/request.h>
#include <cordon/result.h>
#include <cordon/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cordon_judge_options {
    size_t struct_size;
    /* How many cases run at the same time; 0 means 1. More than 256 are treated as 256. */
    unsigned parallel;
    /* Called after each case with its number from 0 and the number of all cases. With several cases at a time they end
     * in any order. `test` is valid during the call. May be NULL. */
    void (*on_test)(void *context, size_t index, size_t total, const cordon_test *test);
    /* Asked about 50 times a second whether to continue; 0 cancels what runs and what has not begun. May be NULL. */
    int (*go_on)(void *context);
    void *context; /* handed to both functions */
    /* What a program printed is compared as it is and shown through this. NULL: a request that asks for redaction is
     * refused. Borrowed during the call. */
    const cordon_filter *filter;
} cordon_judge_options;

#define CORDON_JUDGE_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(cordon_judge_options), 0, NULL, NULL, NULL, NULL                                                        \
    }

/* Runs the tests of a request and waits for all of them. The program is compiled once. `options` may be NULL, which
 * means CORDON_JUDGE_OPTIONS_INIT.
 *
 * The result is that of the first case that did not pass, or else of the last case. cordon_result_success() tells
 * whether all cases have passed, cordon_result_tests() counts them, and cordon_result_test() describes each.
 *
 * A test that fails is no error of this function. An error means that the request is wrong or that Cordon could not run
 * it, and nothing is judged then.
 *
 * This is the only function of the library that makes threads: one for each case that runs at the same time, with all
 * signals blocked, and none is left when the function returns. Callbacks and filter are called from the calling
 * thread. */
int cordon_judge(cordon_engine *engine, const cordon_request *request, const cordon_judge_options *options,
                 cordon_result **result, cordon_error *err);

#ifdef __cplusplus
}
#endif
#endif
