/* One run, or one set of tests, from its request to its end: admitted, started, followed, recorded, told. */
#ifndef API_EXECUTION_H
#define API_EXECUTION_H

#include <cordon/run.h>
#include <stdatomic.h>

#include "api/api.h"
#include "api/events.h"
#include "api/held.h"
#include "api/lines.h"
#include "api/policy.h"
#include "engine/account.h"

/* Somebody who waits for the end. */
struct waiter {
    struct waiter *next;
    void (*done)(struct waiter *waiter, struct execution *execution);
};

/* A request smaller than this stays with what is kept of its run, so that a report need not ask the store. */
#define REQUEST_KEPT_BYTES ((uint64_t)64 << 10)

enum execution_state { EXECUTION_QUEUED, EXECUTION_RUNNING, EXECUTION_DONE };

struct execution {
    struct execution *next;            /* in its bucket */
    struct execution *next_done;       /* among those that ended */
    struct execution *next_unrecorded; /* its answer goes out first */
    struct execution *next_quiet;
    struct api *api;
    unsigned references;
    char id[ID_BYTES + 1];
    char key[17];
    char created_at[32];
    enum execution_state state;
    bool tests;     /* judged in a thread */
    bool announced; /* the store knows of it already */
    bool lasting;   /* may be asked for after its end */
    bool quiet;     /* nobody sees what it prints before it ends */
    json_t *asked;
    cordon_request *request;
    struct lane_limits lane;
    struct policy policy;
    struct redactor *redactor;
    struct redact_rules *rules; /* as they were when it came */
    cordon_filter filter;
    struct job job;
    uint64_t output_cost; /* what its output may come to in memory */
    struct hold output, request_held;
    cordon_run *run;
    struct loop_watch watch;
    struct work_item item; /* what a thread does for it; nobody else touches its run meanwhile */
    atomic_bool cancelled;
    bool goes_on;     /* the thread that had it left another step to wait for */
    bool is_long;     /* what has to be done before it starts is a thread's work */
    cordon_error err; /* of that thread */
    int code;
    json_t *made; /* the Result that it made, with its text and status */
    char *made_text;
    size_t made_length;
    const char *made_status;
    cordon_error failure; /* why it did not run; code 0: it did */
    struct events *events;
    struct lines lines;
    struct waiter *waiters;
    struct http_text *text; /* its Result as JSON, once done */
    const char *result;     /* the same */
    json_t *told;           /* the same, until it is recorded */
    struct account account;
    char status[24];
    uint64_t done_us;
};

/* Takes `asked`. Everything that can be wrong with it is found here. */
int execution_new(struct api *api, const struct caller *caller, json_t *asked, struct execution **execution,
                  cordon_error *err);
/* Whether its output can ever fit into the budget. */
bool execution_may_fit(const struct execution *execution, struct budget_refusal *why);
/* Asks for a place. When refused, why; else it will end some day, and tell its waiters. `lasting`: it is remembered for
 * a while after that, with everything it delivered. */
enum admitted execution_submit(struct execution *execution, bool lasting, unsigned *retry_s);
struct execution *execution_find(struct api *api, const char *id, const char *key);
/* Once they have run for a moment: what they print is taken as it comes. */
void executions_watch(struct api *api);
void execution_wait(struct execution *execution, struct waiter *waiter);
void execution_stop_waiting(struct execution *execution, struct waiter *waiter);
void execution_cancel(struct execution *execution);
/* One that has ended: not to be found any more. */
void execution_forget(struct execution *execution);
struct execution *execution_ref(struct execution *execution);
void execution_unref(struct execution *execution);

/* 202 with the id, the state, and where to ask. NULL: one that is not here yet. */
void answer_accepted(struct call *call, const char *id, const struct execution *execution);
/* The request as it may be kept: without secret values. Freed by the caller. */
char *execution_text(const struct execution *execution);
/* Bytes of memory that its result and its output need, once it is done. */
size_t execution_bytes(const struct execution *execution);
/* Its Result while it has none: {"id", "state": …, "status": null}. */
json_t *execution_json(const struct execution *execution);
/* A Result for a run that never was: its state is done, its status `rejected` or `internal_error`. */
json_t *result_of_failure(const char *id, const char *created_at, const char *language, const cordon_error *err);

/* For one that the store was told of and that found no place: it is recorded as failed. */
void execution_settle(struct execution *execution, const cordon_error *why);

/* Answers with its Result. */
void answer_result(struct call *call, struct execution *execution);
/* Follows it. `owner`: when the client leaves before the end, the run ends too. */
void answer_events(struct call *call, struct execution *execution, bool sse, size_t offset, bool owner);

/* kept.c */
void kept_list(struct execution *execution);
void kept_unlist(struct execution *execution);
/* Found by its id until it is in the store. */
void kept_record_later(struct execution *execution);
/* It is in the store, or cannot be. Takes the reference that was given to the recorder. */
void kept_recorded(struct execution *execution);
/* Writes down what has been told. */
void executions_record(struct api *api);
/* Each second: forgets what ended long ago, and lets streams know that they live. */
void executions_tick(struct api *api);
/* Those that wait for a place are told that there will be none; with `running`, the others are cancelled. */
void executions_stop(struct api *api, bool running);
void executions_free(struct api *api);

#endif
