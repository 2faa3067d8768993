/* All cases of a request, several at a time. */
#ifndef JUDGE_CASES_H
#define JUDGE_CASES_H

#include "judge/case.h"
#include "judge/judge.h"

/* More than this many at a time are not started, whatever is asked for. */
#define CASES_PARALLEL_MAX 256

/* What came of them. */
struct tally {
    json_t **rows; /* by case; NULL where it was not run, or after the first failure */
    size_t count, passed, failed, skipped;
    size_t failing; /* the first that did not pass; SIZE_MAX: none */
    bool is_cancelled;
    cordon_result *result; /* of that one, or of the last */
    size_t result_of;
};

int cases_run(struct bench *bench, const struct judge_options *options, struct tally *tally, cordon_error *err);
void tally_free(struct tally *tally);

#endif
