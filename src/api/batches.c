/* Batches: many requests at once, which run as places become free, behind everybody who asks for a single run of
 * another key. Kept in memory; the runs themselves are in the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/execution.h"
#include "api/idempotency.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "plan/request_json.h"

#define REQUESTS_MAX 10000
#define BATCHES_KEPT 16 /* of one caller, that have ended */
#define KEEP_US      (UINT64_C(3600) * 1000000)
#define BATCHES_EACH 8 /* of one caller under way: the others are for others */
/* Bytes charged for each request that is done, beside its row: for its name, or for the reason of its rejection. */
#define ITEM_BYTES 512
/* Of one batch at a time in the queue: it must not fill that for others. */
#define AHEAD 16

struct batch_item {
    struct waiter waiter;
    struct batch *batch;
    char *name; /* the caller's */
    char id[ID_BYTES + 1];
    char status[24]; /* "": not yet */
    json_t *problem; /* why it was rejected */
};

struct batch {
    struct batch *next;
    struct api *api;
    struct caller caller;
    char id[ID_BYTES + 1];
    char created_at[32];
    json_t *requests;
    struct batch_item *items;
    size_t count, begun, done, under_way;
    bool feeding;
    struct hold held;
    uint64_t done_us;
    struct loop_timer later; /* the queue was full */
};

static void feed(struct batch *batch);
static bool is_done(const struct batch *batch);

static json_t *problem_json(const char *code, const cordon_error *err)
{
    return json_pack("{s:s, s:s*, s:s, s:s*}", "code", code, "field", *err->field ? err->field : NULL, "detail",
                     err->text, "hint", *err->hint ? err->hint : NULL);
}

static void on_done(struct waiter *waiter, struct execution *execution)
{
    struct batch_item *item = (struct batch_item *)waiter;
    struct batch *batch = item->batch;
    memcpy(item->status, execution->status, sizeof item->status);
    if (execution->failure.code)
        item->problem = problem_json("rejected", &execution->failure);
    batch->done++;
    batch->under_way--;
    feed(batch);
}

static void reject(struct batch *batch, struct batch_item *item, const char *code, const cordon_error *err)
{
    memcpy(item->status, "rejected", sizeof "rejected");
    item->problem = problem_json(code, err);
    batch->done++;
}

/* A name that is cut would be another's. */
static int check_name(const json_t *asked, cordon_error *err)
{
    const char *name = json_string_value(json_object_get(asked, "id"));
    if (!name || strlen(name) == json_string_length(json_object_get(asked, "id")))
        return 0;
    return error_field(err, "/id", "the id holds a NUL character (\\u0000) after %zu bytes", strlen(name));
}

/* Its name is the batch's business, and no part of the request. */
static json_t *take_name(struct batch_item *item, const json_t *asked)
{
    json_t *copy = json_copy((json_t *)asked);
    const char *name = json_string_value(json_object_get(copy, "id"));
    if (name && !item->name)
        item->name = strdup(name);
    if (name)
        json_object_del(copy, "id");
    return copy;
}

/* False when there is no place for it now. */
static bool begin(struct batch *batch, struct batch_item *item, json_t *asked)
{
    struct execution *execution = NULL;
    cordon_error err = {0};
    unsigned retry_s;
    if (guard_spending(batch->api, &batch->caller)) {
        guard_quota_error(&err);
        reject(batch, item, "cpu_quota", &err);
        return true;
    }
    if (check_name(asked, &err) < 0 ||
        execution_new(batch->api, &batch->caller, take_name(item, asked), &execution, &err) < 0) {
        reject(batch, item, "bad_request", &err);
        return true;
    }
    struct budget_refusal why;
    if (!execution_may_fit(execution, &why)) {
        error_over_budget(&err, &why);
        reject(batch, item, "budget", &err);
        execution_unref(execution);
        return true;
    }
    memcpy(item->id, execution->id, sizeof item->id);
    item->waiter.done = on_done;
    execution_wait(execution, &item->waiter);
    batch->under_way++;
    enum admitted how = execution_submit(execution, true, &retry_s);
    if (how > ADMITTED_LATER) {
        execution_stop_waiting(execution, &item->waiter);
        batch->under_way--;
        *item->id = '\0';
        if (how == REFUSED_SIZE) {
            error_set(&err, CORDON_EINVAL, "queue",
                      "the request's memory or processes are more than all cells here may have together");
            reject(batch, item, "too_large_for_host", &err);
        }
    }
    execution_unref(execution);
    return how <= ADMITTED_LATER || how == REFUSED_SIZE;
}

static void try_later(void *context)
{
    feed(context);
}

static void feed(struct batch *batch)
{
    if (batch->feeding)
        return;
    batch->feeding = true;
    while (batch->begun < batch->count && batch->under_way < AHEAD && !batch->api->draining) {
        if (!begin(batch, &batch->items[batch->begun], json_array_get(batch->requests, batch->begun))) {
            loop_set_timer(batch->api->loop, &batch->later, clock_us() + 200000);
            break;
        }
        json_array_set_new(batch->requests, batch->begun++, json_null()); /* not needed any more */
    }
    if (is_done(batch) && !batch->done_us) {
        batch->done_us = clock_us();
        hold_resize(&batch->held, batch->count * (sizeof *batch->items + ITEM_BYTES), NULL);
    }
    batch->feeding = false;
}

static void batch_free(struct batch *batch)
{
    loop_drop_timer(batch->api->loop, &batch->later);
    hold_end(&batch->held);
    for (size_t i = 0; i < batch->count; i++) {
        json_decref(batch->items[i].problem);
        free(batch->items[i].name);
    }
    json_decref(batch->requests);
    free(batch->items);
    free(batch);
}

static bool is_done(const struct batch *batch)
{
    return batch->done == batch->count;
}

static void forget(struct batch **link)
{
    struct batch *batch = *link;
    *link = batch->next;
    batch_free(batch);
}

/* The newest stands first. */
static bool forget_oldest_of(struct api *api, const struct caller *caller)
{
    struct batch **oldest = NULL;
    for (struct batch **link = &api->batches; *link; link = &(*link)->next)
        if (is_done(*link) && !strcmp((*link)->caller.key.id, caller->key.id))
            oldest = link;
    if (oldest)
        forget(oldest);
    return oldest;
}

static void count_own(const struct api *api, const struct caller *caller, unsigned *under_way, unsigned *done)
{
    *under_way = *done = 0;
    for (const struct batch *batch = api->batches; batch; batch = batch->next)
        if (!strcmp(batch->caller.key.id, caller->key.id))
            ++*(is_done(batch) ? done : under_way);
}

/* Batches of the same caller that have ended make room, the oldest first, and nobody else's. Answers when there is
 * none. */
static bool make_room(struct call *call, uint64_t bytes, struct hold *held)
{
    struct api *api = call->api;
    struct budget_refusal why;
    unsigned under_way, done;
    count_own(api, &call->caller, &under_way, &done);
    if (under_way >= BATCHES_EACH) {
        http_add_header(call->http, "Retry-After", "10");
        problem_answer(call->http, 429, "full", "%u batches of this caller are under way, and more may not be",
                       under_way);
        return false;
    }
    if (done >= BATCHES_KEPT)
        forget_oldest_of(api, &call->caller);
    while (!budget_hold(api->budget, held_name(call->caller.key.id), BUDGET_BATCHES, bytes, held, &why))
        if (why.never || !forget_oldest_of(api, &call->caller)) {
            answer_over_budget(call, &why);
            return false;
        }
    return true;
}

void batches_tick(struct api *api)
{
    uint64_t now = clock_us();
    for (struct batch **link = &api->batches; *link;)
        if (is_done(*link) && now - (*link)->done_us > KEEP_US)
            forget(link);
        else
            link = &(*link)->next;
}

static int read_requests(struct call *call, json_t **requests, cordon_error *err)
{
    size_t length;
    const char *body = http_body(call->http, &length);
    __attribute__((cleanup(json_decrefp))) json_t *root = NULL;
    int code = json_parse(body, length, &root, err);
    if (code < 0)
        return code;
    json_t *list = json_object_get(root, "requests");
    if (!json_is_array(list) || !json_array_size(list))
        return error_field(err, "/requests", "expected a list of requests");
    if (json_array_size(list) > REQUESTS_MAX)
        return error_field(err, "/requests", "%zu requests are too many; expected at most %d", json_array_size(list),
                           REQUESTS_MAX);
    *requests = json_incref(list);
    return 0;
}

static struct batch *batch_find(const struct call *call)
{
    const char *key = caller_sees(&call->caller);
    struct batch *batch = call->api->batches;
    while (batch && (strcmp(batch->id, call->id) != 0 || (key && strcmp(key, batch->caller.key.id) != 0)))
        batch = batch->next;
    if (!batch)
        problem_answer(call->http, 404, "not_found", "no batch with this id is known");
    return batch;
}

static json_t *item_json(const struct batch_item *item, size_t number)
{
    const char *state = *item->status ? "done" : *item->id ? "running" : "queued";
    json_t *name = item->name ? json_string(item->name) : json_sprintf("%zu", number);
    return json_pack("{s:o, s:s?, s:s, s:s?, s:O*}", "id", name, "execution", *item->id ? item->id : NULL, "state",
                     state, "status", *item->status ? item->status : NULL, "problem", item->problem);
}

static json_t *batch_json(const struct batch *batch)
{
    json_t *items = json_array(), *by_status = json_object();
    json_int_t succeeded = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const char *status = batch->items[i].status;
        json_array_append_new(items, item_json(&batch->items[i], i));
        succeeded += !strcmp(status, "ok");
        if (*status)
            json_object_set_new(by_status, status,
                                json_integer(1 + json_integer_value(json_object_get(by_status, status))));
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "id", batch->id, "state",
                     batch->done == batch->count ? "done" : "running", "created_at", batch->created_at, "total",
                     (json_int_t)batch->count, "done", (json_int_t)batch->done, "succeeded", succeeded, "failed",
                     (json_int_t)batch->done - succeeded, "by_status", by_status, "items", items);
}

static void answer_batch(struct call *call, const struct batch *batch)
{
    char location[80];
    json_t *answer =
        json_pack("{s:s, s:s, s:I, s:I}", "id", batch->id, "state", batch->done == batch->count ? "done" : "running",
                  "total", (json_int_t)batch->count, "done", (json_int_t)batch->done);
    snprintf(location, sizeof location, "/v1/batches/%s", batch->id);
    http_add_header(call->http, "Location", location);
    answer_json(call, 202, answer);
    json_decref(answer);
}

/* Takes `requests`. NULL when it was answered. */
static struct batch *batch_new(struct call *call, json_t *requests)
{
    struct api *api = call->api;
    size_t count = json_array_size(requests);
    struct hold held = {0};
    size_t length;
    const char *body = http_body(call->http, &length);
    uint64_t items = count * (sizeof(struct batch_item) + ITEM_BYTES);
    if (!make_room(call, json_cost(body, length) + items, &held)) {
        json_decref(requests);
        return NULL;
    }
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch || !(batch->items = calloc(count, sizeof *batch->items))) {
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
        hold_end(&held);
        free(batch);
        json_decref(requests);
        return NULL;
    }
    batch->held = held;
    batch->api = api;
    batch->caller = call->caller;
    batch->requests = requests;
    batch->count = count;
    batch->later = (struct loop_timer){.expired = try_later, .context = batch};
    api_random_id(batch->id, ID_BYTES);
    api_time_text(batch->created_at);
    for (size_t i = 0; i < count; i++)
        batch->items[i].batch = batch;
    batch->next = api->batches;
    api->batches = batch;
    return batch;
}

void handle_batches_post(struct call *call)
{
    json_t *requests = NULL;
    cordon_error err;
    enum remembered_as known = idempotency_find(call, call->id);
    struct batch *batch = known == REMEMBERED_SAME ? batch_find(call) : NULL;
    if (batch)
        answer_batch(call, batch);
    if (known != REMEMBERED_NOT || !guard_runs(call))
        return;
    if (read_requests(call, &requests, &err) < 0) {
        problem_from(call->http, &err);
        return;
    }
    batch = batch_new(call, requests);
    if (!batch)
        return;
    idempotency_remember(call, batch->id);
    feed(batch);
    answer_batch(call, batch);
}

void handle_batch_get(struct call *call)
{
    const struct batch *batch = batch_find(call);
    if (!batch)
        return;
    json_t *json = batch_json(batch);
    answer_json(call, 200, json);
    json_decref(json);
}

void batches_free(struct api *api)
{
    while (api->batches) {
        struct batch *batch = api->batches;
        api->batches = batch->next;
        batch_free(batch);
    }
}
