/* The runs under way of one request for tests, so that another thread can end them. */
#ifndef JUDGE_RUNS_H
#define JUDGE_RUNS_H

#include <cordon/run.h>
#include <pthread.h>

#include "engine/run.h"

struct runs {
    pthread_mutex_t lock;
    struct runs_one *first;
    size_t bound;           /* runs for cases from this number on are cancelled */
    struct account account; /* of those that have ended */
};

/* One run that is under way; lives on the stack of whoever waits for it. */
struct runs_one {
    cordon_run *run;
    size_t index; /* of its case */
    struct runs_one *next;
};

void runs_open(struct runs *runs);
void runs_close(struct runs *runs);
void runs_add(struct runs *runs, struct runs_one *one);
void runs_remove(struct runs *runs, struct runs_one *one);
/* Ends the runs for cases from `index` on, now and in future; 0 ends all. A bound is only ever lowered. */
void runs_cancel_from(struct runs *runs, size_t index);
/* Adds what a run used to the account of all. */
void runs_charge(struct runs *runs, const cordon_run *run);
/* cordon_run_wait() as one of them, charged to the account. */
int runs_wait(struct runs *runs, size_t index, cordon_run *run, cordon_result **result, cordon_error *err);

#endif
