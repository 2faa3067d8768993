/* POST /v1/execute and /v1/executions, and /v1/tests, which differ in what the body holds: a run is waited for,
 * followed as a stream, or left to itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/execution.h"
#include "api/idempotency.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "plan/request_json.h"
#include "service/log.h"
#include "service/metrics.h"

/* A call that waits for the end of a run. */
struct waiting {
    struct waiter waiter;
    struct call *call;
    struct execution *execution;
    bool owner; /* when its client leaves, the run ends */
};

static void refuse(struct call *call, enum admitted how, unsigned retry_s)
{
    char text[16];
    snprintf(text, sizeof text, "%u", retry_s);
    if (how == REFUSED_SIZE) {
        metrics_refused("limits");
        problem_answer(call->http, 422, "too_large_for_host",
                       "the request's memory or processes are more than all cells here may have together");
        return;
    }
    http_add_header(call->http, "Retry-After", text);
    metrics_refused(how == REFUSED_RATE ? "quota" : "full");
    problem_answer(call->http, 429, how == REFUSED_RATE ? "rate_limited" : "full",
                   how == REFUSED_RATE ? "this key has made too many requests in a minute; try again in %u s"
                                       : "every place is taken and the queue is full; try again in %u s",
                   retry_s);
}

/* Why it never ran. */
static void answer_failure(struct call *call, const cordon_error *err)
{
    bool draining = !strcmp(err->step, "draining"), waited = !strcmp(err->step, "queue");
    bool spent = !strcmp(err->step, "cpu_quota");
    if (draining || waited)
        http_add_header(call->http, "Retry-After", "5");
    if (spent)
        guard_tell_quota(call);
    if (draining)
        problem_error(call->http, 503, "draining", err);
    else if (waited)
        problem_error(call->http, 429, "full", err);
    else if (spent)
        problem_error(call->http, 429, "cpu_quota", err);
    else if (err->code == CORDON_ENOTFOUND)
        problem_error(call->http, 400, "not_available", err);
    else
        problem_from(call->http, err);
}

static void on_done(struct waiter *waiter, struct execution *execution)
{
    struct waiting *waiting = (struct waiting *)waiter;
    if (execution->failure.code)
        answer_failure(waiting->call, &execution->failure);
    else
        answer_result(waiting->call, execution);
    execution_unref(waiting->execution);
    free(waiting);
}

static void on_left(void *context)
{
    struct waiting *waiting = context;
    struct execution *execution = waiting->execution;
    execution_stop_waiting(execution, &waiting->waiter);
    if (waiting->owner)
        execution_cancel(execution);
    execution_unref(execution);
    free(waiting);
}

static void wait_for(struct call *call, struct execution *execution, bool owner)
{
    struct waiting *waiting = calloc(1, sizeof *waiting);
    if (!waiting) {
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
        return;
    }
    *waiting =
        (struct waiting){.waiter.done = on_done, .call = call, .execution = execution_ref(execution), .owner = owner};
    if (execution->state == EXECUTION_DONE) {
        on_done(&waiting->waiter, execution);
        return;
    }
    execution_wait(execution, &waiting->waiter);
    http_wait(call->http, on_left, waiting);
}

void answer_result(struct call *call, struct execution *execution)
{
    if (!execution->text) {
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
        return;
    }
    call->shown = execution_ref(execution);
    http_answer_text(call->http, 200, "application/json", execution->text);
}

static void on_owner_left(void *context)
{
    execution_cancel(context); /* nothing when it has ended */
}

static void on_follower_left(void *context)
{
    (void)context;
}

void answer_events(struct call *call, struct execution *execution, bool sse, size_t offset, bool owner)
{
    if (!held_take(call, BUDGET_ANSWERS, EVENTS_FOLLOWER_BYTES, &call->held)) {
        if (owner)
            execution_cancel(execution);
        return;
    }
    call->shown = execution_ref(execution);
    if (!events_follow(execution->events, call->http, sse, execution->id, offset,
                       owner ? on_owner_left : on_follower_left, execution))
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
}

/* What every POST of a run begins with; NULL when it was answered. */
static struct execution *take_request(struct call *call, bool tests)
{
    struct api *api = call->api;
    cordon_error err;
    size_t length;
    const char *body = http_body(call->http, &length);
    json_t *asked = NULL;
    struct execution *execution = NULL;
    struct budget_refusal why;
    struct hold held = {0};
    if (!guard_runs(call))
        return NULL;
    /* It is held as a JSON value and as a request. */
    if (!held_take(call, BUDGET_REQUESTS, json_cost(body, length) + length, &held))
        return NULL;
    int code = json_parse(body, length, &asked, &err);
    if (code == 0 && tests && !json_object_get(asked, "tests")) {
        json_decref(asked);
        code = error_field(&err, "/tests",
                           "tests are missing; expected {\"cases\": […]} or {\"files\": …, \"framework\": …}");
    } else if (code == 0)
        code = execution_new(api, &call->caller, asked, &execution, &err);
    if (code < 0) {
        hold_end(&held);
        if (code == CORDON_ENOTFOUND)
            problem_error(call->http, 400, "bad_request", &err);
        else
            problem_from(call->http, &err);
        return NULL;
    }
    execution->request_held = held;
    /* What is looked for in the output is held with the request, and known only when that is read. */
    if (!held_take(call, BUDGET_REQUESTS, held.amount + redactor_bytes(execution->redactor),
                   &execution->request_held)) {
        execution_unref(execution);
        return NULL;
    }
    if (!execution_may_fit(execution, &why)) {
        answer_over_budget(call, &why);
        execution_unref(execution);
        return NULL;
    }
    return execution;
}

static bool wants_stream(const struct call *call, bool *sse)
{
    static const char *const types[] = {"application/json", "text/event-stream", "application/x-ndjson"};
    size_t type = call_prefers(call, types, ARRAY_LEN(types));
    *sse = type == 1;
    return type > 0;
}

/* The run that this one repeats, wherever it is by now. */
static void answer_again(struct call *call, bool stream)
{
    struct execution *execution = execution_find(call->api, call->id, caller_sees(&call->caller));
    if (stream)
        handle_execution_events(call);
    else if (execution)
        wait_for(call, execution, false);
    else
        handle_execution_get(call);
}

static void execute(struct call *call, bool tests)
{
    bool sse, stream = wants_stream(call, &sse);
    enum remembered_as known = idempotency_find(call, call->id);
    unsigned retry_s;
    if (known == REMEMBERED_SAME)
        answer_again(call, stream);
    if (known != REMEMBERED_NOT)
        return;
    struct execution *execution = take_request(call, tests);
    if (!execution)
        return;
    bool lasting = idempotency_remember(call, execution->id);
    execution->quiet = !stream && !lasting;
    enum admitted how = execution_submit(execution, lasting, &retry_s);
    if (how > ADMITTED_LATER) {
        idempotency_forget(call->api, execution->id);
        refuse(call, how, retry_s);
    } else if (!stream || execution->state == EXECUTION_DONE)
        wait_for(call, execution, !lasting);
    else
        answer_events(call, execution, sse, 0, !lasting);
    execution_unref(execution);
}

void handle_execute(struct call *call)
{
    execute(call, false);
}

void handle_tests(struct call *call)
{
    execute(call, true);
}

/* Accepting one that is asked for later: on the disk before the client hears of it. */
struct accepting {
    struct work_item item;
    struct call *call; /* NULL: its client has left */
    struct execution *execution;
    cordon_error err;
    int code;
};

static void accept_in_store(struct work_item *item)
{
    struct accepting *accepting = (struct accepting *)item;
    const struct execution *execution = accepting->execution;
    auto_free char *asked = execution_text(execution);
    struct store_run run = {execution->id, execution->key, asked, NULL, NULL};
    accepting->code = asked ? store_accept(execution->api->store, &run, &accepting->err) : error_nomem(&accepting->err);
}

void answer_accepted(struct call *call, const char *id, const struct execution *execution)
{
    static const char *const states[] = {"queued", "running", "done"};
    char location[80];
    json_t *answer =
        json_pack("{s:s, s:s, s:s?}", "id", id, "state", states[execution ? execution->state : EXECUTION_QUEUED],
                  "status", execution && *execution->status ? execution->status : NULL);
    snprintf(location, sizeof location, "/v1/executions/%s", id);
    http_add_header(call->http, "Location", location);
    answer_json(call, 202, answer);
    json_decref(answer);
}

static void accepted(struct work_item *item)
{
    struct accepting *accepting = (struct accepting *)item;
    struct execution *execution = accepting->execution;
    unsigned retry_s;
    enum admitted how = ADMITTED;
    execution->announced = accepting->code == 0;
    if (accepting->code < 0)
        idempotency_forget(execution->api, execution->id);
    if (accepting->code == 0) {
        how = execution_submit(execution, true, &retry_s);
        if (how > ADMITTED_LATER) {
            cordon_error err;
            error_set(&err, CORDON_EINVAL, "queue", "refused: every place is taken and the queue is full");
            execution_settle(execution, &err);
            idempotency_forget(execution->api, execution->id);
        }
    }
    if (accepting->call) {
        http_wait(accepting->call->http, NULL, NULL);
        if (accepting->code < 0)
            problem_error(accepting->call->http, 503, "store", &accepting->err);
        else if (how > ADMITTED_LATER)
            refuse(accepting->call, how, retry_s);
        else
            answer_accepted(accepting->call, execution->id, execution);
    }
    execution_unref(execution);
    free(accepting);
}

static void on_accepting_left(void *context)
{
    struct accepting *accepting = context;
    accepting->call = NULL;
}

void handle_executions_post(struct call *call)
{
    enum remembered_as known = idempotency_find(call, call->id);
    if (known == REMEMBERED_SAME)
        answer_accepted(call, call->id, execution_find(call->api, call->id, NULL));
    if (known != REMEMBERED_NOT)
        return;
    struct execution *execution = take_request(call, false);
    if (!execution)
        return;
    struct accepting *accepting = calloc(1, sizeof *accepting);
    if (!accepting) {
        execution_unref(execution);
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
        return;
    }
    idempotency_remember(call, execution->id);
    *accepting = (struct accepting){
        .item = {.run = accept_in_store, .done = accepted}, .call = call, .execution = execution, .code = CORDON_EGONE};
    http_wait(call->http, on_accepting_left, accepting);
    work_submit(call->api->disk, &accepting->item);
}
