/* One case: the program run on it, and what is to be thought of that. */
#ifndef JUDGE_CASE_H
#define JUDGE_CASE_H

#include "judge/program.h"
#include "judge/spec.h"

/* Everything that the workers share; borrowed while they run. */
struct bench {
    cordon_engine *engine;
    const struct spec *spec;
    struct program program; /* under test */
    struct program *helpers;
    size_t helper_count;
    struct program **helper_of; /* by case; NULL where it has none */
    struct runs runs;
    /* The most that one program, one checker and one interactor are asked to have. */
    struct judge_needs program_needs, checker_needs, interactor_needs;
    int64_t output_bytes, captured_bytes; /* as in judge_needs */
};

struct verdict {
    size_t index;
    const char *status;    /* "passed", "failed", "checker_error", or a run's */
    cordon_result *result; /* of the program; NULL when it was not run */
    bool is_compared;      /* failed because its output is not what was expected */
    bool is_cut;           /* its output was longer than is kept */
    /* What a checker printed, or an interactor on standard error; or a line of Cordon's own. */
    struct buf message;
};

/* Opens the programs of a request; says what is wrong with any of its cases before the first one runs. */
int bench_open(struct bench *bench, cordon_engine *engine, const json_t *request, const struct spec *spec,
               const struct judge_options *options, cordon_error *err);
void bench_close(struct bench *bench);
/* What the cells of one case may have at once: a checker runs after the program, an interactor beside it. */
struct judge_needs bench_needs(const struct bench *bench);

/* An error means that Cordon failed, or that the request cannot be run at all. */
int case_run(struct bench *bench, size_t index, struct verdict *verdict, cordon_error *err);
void verdict_free(struct verdict *verdict);

/* Of case `index`: its own input, arguments and limits. */
struct program_input case_input(const struct bench *bench, size_t index);

/* Kept of each side's output in a conversation, and so the most that can pass, unless the request sets a bound. */
#define TRAFFIC_BYTES ((size_t)64 << 20)
/* interact.c: the same for a case with an interactor, which is `helper`. */
int interact_run(struct bench *bench, size_t index, struct program *helper, struct verdict *verdict, cordon_error *err);
/* What the exit of a checker or interactor says of a program that did well: 0 passed, 1 failed, else its own error. */
void verdict_by_helper(struct verdict *verdict, const char *what, const cordon_result *result, struct slice said);

#endif
