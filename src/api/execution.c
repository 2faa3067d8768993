/* Owns the life of an execution. */
#include "api/execution.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "api/idempotency.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/result_json.h"
#include "engine/run.h"
#include "judge/judge.h"
#include "output/json_text.h"
#include "output/utf8.h"
#include "plan/request_json.h"
#include "service/log.h"
#include "service/metrics.h"

/* Requests with more code or files are started in a thread, because they are copied and compiled programs are looked up
 * by their hash. With larger bounds the loop is away for longer; with smaller ones, more runs wait for a thread. */
#define LONG_REQUEST ((size_t)256 << 10)
#define LONG_FILES   16

struct execution *execution_ref(struct execution *execution)
{
    execution->references++;
    return execution;
}

void execution_unref(struct execution *execution)
{
    if (!execution || --execution->references)
        return;
    execution->api->live_count--;
    cordon_run_free(execution->run);
    hold_end(&execution->output);
    hold_end(&execution->request_held);
    redactor_close(execution->redactor);
    redact_rules_close(execution->rules);
    cordon_request_free(execution->request);
    json_decref(execution->asked);
    lines_end(&execution->lines);
    events_unref(execution->events);
    http_text_unref(execution->text);
    json_decref(execution->told);
    free(execution);
}

/* What a request may ask for here */

/* The judge makes its own requests out of what was asked. */
static void tolerate(struct execution *execution, const char *control)
{
    json_t *list = json_object_get(execution->asked, "optional");
    if (!list && json_object_set_new(execution->asked, "optional", json_array()) == 0)
        list = json_object_get(execution->asked, "optional");
    json_array_append_new(list, json_string(control));
}

static void promise(struct execution *execution, int64_t memory_bytes, int64_t processes)
{
    execution->job.memory_bytes = memory_bytes == LIMIT_UNLIMITED ? 0 : (uint64_t)memory_bytes;
    execution->job.processes = processes == LIMIT_UNLIMITED ? 0 : (uint64_t)processes;
}

/* Tests run their cases one after the other in one place. */
static void promise_time(struct execution *execution, int64_t wall_ms)
{
    size_t cases = json_array_size(json_object_get(json_object_get(execution->asked, "tests"), "cases"));
    uint64_t runs = cases ? cases : 1, most_ms = (uint64_t)LIMIT_UNLIMITED / 1000 / runs;
    execution->job.wall_us = ((uint64_t)wall_ms < most_ms ? (uint64_t)wall_ms : most_ms) * runs * 1000;
}

/* What the run may make the daemon hold: its output, and what it may collect, leave as its value or have a compiler
 * print, and `besides`. So much of the latter as the caller could never hold is not charged, or the run could never
 * start. */
static uint64_t cost_of(const struct execution *execution, const struct manifest *language, int64_t output_bytes,
                        uint64_t besides)
{
    const struct held_parts parts = {.output_bytes = (uint64_t)output_bytes,
                                     .collects = execution->request->collect.count > 0,
                                     .has_value = language->value,
                                     .compiles = language->compile != NULL};
    uint64_t least = held_cost(&(struct held_parts){.output_bytes = parts.output_bytes}),
             whole = held_cost(&parts) + besides;
    uint64_t most = budget_most_each(execution->api->budget, BUDGET_OUTPUT);
    return whole <= most ? whole : least > most ? least : most;
}

static int apply_policy(struct execution *execution, const struct caller *caller, const struct manifest *language,
                        cordon_error *err)
{
    const struct config *config = execution->api->config;
    cordon_request *request = execution->request;
    struct limits limits = {0};
    int code = 0;
    execution->policy = (struct policy){config_ceilings(config), config->allow_unlimited, caller->key};
    for (char **control = config->optional; code == 0 && control && *control; control++) {
        code = cordon_request_add_optional(request, *control, err);
        if (execution->tests)
            tolerate(execution, *control);
    }
    if (code == 0)
        code = policy_apply(&execution->policy, request, &limits, err);
    promise(execution, limits.value[LIMIT_MEMORY_BYTES], limits.value[LIMIT_PROCESSES]);
    promise_time(execution, limits.value[LIMIT_WALL_MS]);
    if (code == 0)
        execution->output_cost = cost_of(execution, language, limits.value[LIMIT_OUTPUT_BYTES], 0);
    return code;
}

/* The limits of every case, checker and interactor are held against the same ceilings, and what the cells of one case
 * may have together counts for admission. */
static int check_tests(struct execution *execution, const struct manifest *language, cordon_error *err)
{
    const struct judge_options options = {.admit = policy_admit, .bound = NULL, .policy = &execution->policy};
    struct judge_needs needs = {0};
    int code = judge_check(execution->asked, &options, &needs, err);
    if (code < 0)
        return code;
    promise(execution, needs.memory_bytes, needs.processes);
    /* Each of the streams that are captured is bounded by the ceiling; there are four at most. */
    int64_t ceiling = (int64_t)execution->api->config->output_bytes, captured = needs.captured_bytes;
    int64_t output = needs.output_bytes < ceiling ? needs.output_bytes : ceiling;
    uint64_t besides = (uint64_t)(captured < 4 * ceiling ? captured : 4 * ceiling);
    execution->output_cost = cost_of(execution, language, output, besides);
    return 0;
}

static bool fits(void *context);
static void start(void *context);
static void on_refused(void *context);
static void on_output(void *context, int stream, const void *bytes, size_t length);
static void tell_output(void *context, int stream, const void *bytes, size_t length);
static void finish(struct execution *execution, json_t *told, char *text, size_t length, const char *status);

bool execution_may_fit(const struct execution *execution, struct budget_refusal *why)
{
    return budget_allows(execution->api->budget, held_name(execution->key), BUDGET_OUTPUT, execution->output_cost,
                         why) ||
           !why->never;
}

int execution_new(struct api *api, const struct caller *caller, json_t *asked, struct execution **out,
                  cordon_error *err)
{
    struct execution *execution = calloc(1, sizeof *execution);
    if (!execution) {
        json_decref(asked);
        return error_nomem(err);
    }
    execution->api = api;
    execution->references = 1;
    api->live_count++;
    execution->asked = asked;
    execution->rules = redact_rules_ref(api->rules);
    execution->watch.fd = -1;
    api_random_id(execution->id, ID_BYTES);
    api_time_text(execution->created_at);
    memcpy(execution->key, caller->key.id, sizeof execution->key);
    execution->lane = (struct lane_limits){caller->key.concurrent, caller->key.per_minute};
    execution->tests = json_is_object(asked) && json_object_get(asked, "tests");
    execution->job = (struct job){.fits = fits, .start = start, .refused = on_refused, .context = execution};
    const struct manifest *language;
    int code = request_from_object(asked, &execution->request, err);
    if (code == 0)
        code = request_check(execution->request, err);
    if (code == 0)
        code = catalog_find(api->engine->catalog, execution->request->language, &language, err);
    if (code == 0)
        code = apply_policy(execution, caller, language, err);
    if (code == 0 && execution->tests)
        code = check_tests(execution, language, err);
    if (code == 0)
        code = redactor_open(api->rules, execution->request, api->sanitize, &execution->redactor, err);
    if (code == 0 && !(execution->events = events_new(execution->request->base64_output)))
        code = error_nomem(err);
    if (code < 0) {
        execution_unref(execution);
        return code;
    }
    execution->is_long = language->compile || execution->request->code.length > LONG_REQUEST ||
                         execution->request->file_count > LONG_FILES;
    *out = execution;
    return 0;
}

enum admitted execution_submit(struct execution *execution, bool lasting, unsigned *retry_s)
{
    execution_ref(execution); /* until it is done */
    execution->lasting = execution->events->kept = lasting;
    kept_list(execution);
    enum admitted how =
        admission_ask(execution->api->admission, held_name(execution->key), &execution->lane, &execution->job, retry_s);
    if (how > ADMITTED_LATER) {
        kept_unlist(execution);
        execution_unref(execution);
    }
    return how;
}

/* Running */

static void on_run_ready(void *context, uint32_t events);

static const char *status_of_failure(const cordon_error *err)
{
    bool cancelled = !strcmp(err->step, "cancelled");
    bool own = err->code == CORDON_ESYSTEM || err->code == CORDON_ENOMEM || err->code == CORDON_EGONE;
    return cancelled ? "cancelled" : own ? "internal_error" : "rejected";
}

static void fail(struct execution *execution, const cordon_error *err)
{
    execution->failure = *err;
    json_t *told = result_of_failure(execution->id, execution->created_at, execution->request->language, err);
    size_t length = 0;
    char *text = json_text(told, &length);
    finish(execution, told, text, length, status_of_failure(err));
}

static struct execution *of_item(struct work_item *item)
{
    return (struct execution *)((char *)item - offsetof(struct execution, item));
}

/* In a thread, where it takes long: the text of a Result may be six times as long as what was printed. */
static void encode(struct execution *execution, json_t *result, const char *status)
{
    execution->made = result;
    execution->made_text = json_text(result, &execution->made_length);
    execution->made_status = status ? status : "internal_error";
}

/* What is told of a run whose thread never got to it. */
static void expect_stop(struct execution *execution)
{
    execution->code = error_set(&execution->err, CORDON_EGONE, "daemon", "the daemon stopped before the run had ended");
}

static void judge(struct work_item *item)
{
    struct execution *execution = of_item(item);
    struct judge_options options = {.cancel = &execution->cancelled,
                                    .filter = execution->redactor ? &execution->filter : NULL,
                                    .bound = policy_bound,
                                    .policy = &execution->policy,
                                    .account = &execution->account};
    json_t *result = NULL;
    execution->code = judge_run(execution->api->engine, execution->asked, &options, &result, &execution->err);
    if (execution->code < 0)
        return;
    json_object_set_new(result, "id", json_string(execution->id));
    json_object_set_new(result, "created_at", json_string(execution->created_at));
    json_object_set_new(result, "redactions", redactor_counts_json(execution->redactor));
    encode(execution, result, json_string_value(json_object_get(result, "status")));
}

static void take_made(struct execution *execution)
{
    if (execution->code < 0)
        fail(execution, &execution->err);
    else
        finish(execution, take_ptr(&execution->made), take_ptr(&execution->made_text), execution->made_length,
               execution->made_status);
}

static void judged(struct work_item *item)
{
    take_made(of_item(item));
}

static void keep_quiet(struct execution *execution)
{
    struct api *api = execution->api;
    execution->next_quiet = api->quiet;
    api->quiet = execution;
    if (!api->watcher.at_us)
        loop_set_timer(api->loop, &api->watcher, clock_us() + RUN_QUIET_MS * 1000);
}

static void forget_quiet(struct execution *execution)
{
    struct api *api = execution->api;
    struct execution **link = &api->quiet;
    while (*link && *link != execution)
        link = &(*link)->next_quiet;
    if (*link)
        *link = execution->next_quiet;
    if (!api->quiet)
        loop_drop_timer(api->loop, &api->watcher);
}

void executions_watch(struct api *api)
{
    for (; api->quiet; api->quiet = api->quiet->next_quiet)
        run_watch_output(api->quiet->run);
}

static bool fits(void *context)
{
    const struct execution *execution = context;
    return budget_allows(execution->api->budget, held_name(execution->key), BUDGET_OUTPUT, execution->output_cost,
                         NULL);
}

static void watch(struct execution *execution)
{
    execution->watch = (struct loop_watch){.fd = -1, .ready = on_run_ready, .context = execution};
    if (loop_watch(execution->api->loop, &execution->watch, cordon_run_fd(execution->run), EPOLLIN) < 0) {
        cordon_error err;
        error_sys(&err, ENOMEM, "daemon", "the run cannot be watched");
        fail(execution, &err);
    } else if (execution->cancelled)
        cordon_run_cancel(execution->run);
}

static void begin(struct work_item *item)
{
    struct execution *execution = of_item(item);
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    options.id = execution->id;
    options.queue_us = clock_us() - execution->job.queued_us;
    options.filter = execution->redactor ? &execution->filter : NULL;
    options.context = execution;
    options.on_output = on_output;
    execution->code = (execution->quiet ? run_start_quietly : cordon_run_start)(
        execution->api->engine, execution->request, &options, &execution->run, &execution->err);
}

static void begun(struct work_item *item)
{
    struct execution *execution = of_item(item);
    if (execution->code < 0) {
        fail(execution, &execution->err);
        return;
    }
    if (execution->quiet)
        keep_quiet(execution);
    watch(execution);
}

static void start(void *context)
{
    struct execution *execution = context;
    struct api *api = execution->api;
    cordon_error err;
    if (guard_spent(api, &execution->policy.key)) {
        guard_quota_error(&err);
        fail(execution, &err);
        return;
    }
    if (!budget_hold(api->budget, held_name(execution->key), BUDGET_OUTPUT, execution->output_cost, &execution->output,
                     NULL)) {
        error_nomem(&err);
        fail(execution, &err);
        return;
    }
    execution->state = EXECUTION_RUNNING;
    events_running(execution->events);
    if (execution->redactor)
        execution->filter = redactor_filter(execution->redactor);
    lines_init(&execution->lines, api->loop, tell_output, execution);
    execution->item = execution->tests ? (struct work_item){.run = judge, .done = judged}
                                       : (struct work_item){.run = begin, .done = begun};
    if (execution->tests || execution->is_long) {
        execution->quiet = false;
        expect_stop(execution);
        work_submit(api->work, &execution->item);
        return;
    }
    begin(&execution->item);
    begun(&execution->item);
}

static void on_refused(void *context)
{
    struct execution *execution = context;
    cordon_error err;
    error_set(&err, CORDON_ESTATE, "queue", "no place became free in time");
    error_hint(&err, "try again later, or raise `concurrency` or `queue_wait`");
    metrics_refused("full");
    fail(execution, &err);
}

static void tell_output(void *context, int stream, const void *bytes, size_t length)
{
    const struct execution *execution = context;
    events_add(execution->events, stream, bytes, length);
}

static void on_output(void *context, int stream, const void *bytes, size_t length)
{
    struct execution *execution = context;
    if (execution->events->kept || execution->events->followers)
        lines_add(&execution->lines, stream, bytes, length);
}

static void add_redactions(const struct execution *execution, cordon_result *result)
{
    const struct redaction *rows = NULL;
    size_t count = execution->redactor ? redactor_counts(execution->redactor, &rows) : 0;
    for (size_t i = 0; i < count; i++)
        cordon_result_add_redaction(result, rows[i].rule, rows[i].where, rows[i].count);
}

/* The run has ended, well or not. */
static void make_result(struct execution *execution)
{
    cordon_result *result = NULL;
    if (execution->code > 0)
        execution->code = cordon_run_wait(execution->run, &result, &execution->err);
    if (execution->code < 0)
        return;
    add_redactions(execution, result);
    encode(execution, result_object(result), cordon_status_name(cordon_result_status(result)));
    cordon_result_free(result);
}

static void advance(struct work_item *item)
{
    struct execution *execution = of_item(item);
    execution->code = run_advance(execution->run, &execution->err);
    execution->goes_on = execution->code == 0;
    if (!execution->goes_on)
        make_result(execution);
}

static void advanced(struct work_item *item)
{
    struct execution *execution = of_item(item);
    if (execution->goes_on) {
        watch(execution);
        return;
    }
    account_add(&execution->account, run_account(execution->run));
    take_made(execution);
}

static void on_run_ready(void *context, uint32_t events)
{
    struct execution *execution = context;
    (void)events;
    execution->code = run_dispatch(execution->run, &execution->err);
    if (execution->code == 0)
        return;
    loop_forget(execution->api->loop, &execution->watch);
    execution->goes_on = false;
    if (execution->code == RUN_LONG) {
        forget_quiet(execution);
        run_watch_output(execution->run);
        expect_stop(execution);
        execution->item = (struct work_item){.run = advance, .done = advanced};
        work_submit(execution->api->work, &execution->item);
        return;
    }
    make_result(execution);
    advanced(&execution->item);
}

/* The end */

char *execution_text(const struct execution *execution)
{
    json_t *copy = json_deep_copy(execution->asked), *env = json_object_get(copy, "env"), *value;
    const char *name;
    void *safe;
    json_object_foreach_safe(env, safe, name, value)
    {
        if (json_is_object(value) && json_is_true(json_object_get(value, "secret")))
            json_object_set_new(value, "value", json_null());
    }
    /* Whoever runs it again elsewhere should see the same. */
    enum sanitize usual = execution->api->sanitize;
    if (!json_object_get(copy, "sanitize"))
        json_object_set_new(copy, "sanitize",
                            usual == SANITIZE_ALL ? json_string("all") : json_boolean(usual == SANITIZE_SECRETS));
    /* Not even a program's own text may keep a secret that it was given. */
    struct redactor *known = NULL;
    int code = redactor_open_known(execution->rules, execution->request, &known, NULL);
    if (code == 0 && known)
        code = redactor_json(known, &copy);
    redactor_close(known);
    char *text = code == 0 ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(copy);
    return text;
}

size_t execution_bytes(const struct execution *execution)
{
    return (execution->text ? execution->text->length : 0) + events_bytes(execution->events);
}

/* Whoever waits is told; everything that can wait until that is sent is left to executions_record(). A run that was
 * refused before any cell ran leaves no record, unless it was announced. */
static void finish(struct execution *execution, json_t *told, char *text, size_t length, const char *status)
{
    struct api *api = execution->api;
    execution->told = told;
    execution->text = text ? http_text_new(text, length) : NULL;
    execution->result = execution->text ? execution->text->bytes : NULL;
    if (!execution->result && !execution->failure.code) {
        error_nomem(&execution->failure);
        status = "internal_error";
    }
    guard_spend(api, execution->key, execution->account.cpu_us);
    if (execution->quiet)
        forget_quiet(execution);
    snprintf(execution->status, sizeof execution->status, "%s", status);
    execution->state = EXECUTION_DONE;
    execution->done_us = clock_us();
    if (execution->failure.code)
        idempotency_forget(api, execution->id);
    lines_end(&execution->lines);
    events_end(execution->events, execution->text);
    hold_count(&execution->output, BUDGET_OUTPUT, execution_bytes(execution));
    while (execution->waiters) {
        struct waiter *waiter = execution->waiters;
        execution->waiters = waiter->next;
        waiter->done(waiter, execution);
    }
    kept_record_later(execution);
    admission_leave(api->admission, &execution->job);
}

void execution_settle(struct execution *execution, const cordon_error *why)
{
    execution->failure = *why;
    execution->lasting = false;
    execution->state = EXECUTION_DONE;
    snprintf(execution->status, sizeof execution->status, "%s", status_of_failure(why));
    execution->told = result_of_failure(execution->id, execution->created_at, execution->request->language, why);
    kept_list(execution);
    kept_record_later(execution_ref(execution));
}

void execution_cancel(struct execution *execution)
{
    if (execution->state == EXECUTION_DONE)
        return;
    execution->cancelled = true;
    if (execution->run)
        cordon_run_cancel(execution->run);
    if (execution->state == EXECUTION_QUEUED) {
        cordon_error err;
        error_set(&err, CORDON_ESTATE, "cancelled", "cancelled before it ran");
        fail(execution, &err);
    }
}

/* Waiting and finding */

void execution_wait(struct execution *execution, struct waiter *waiter)
{
    waiter->next = execution->waiters;
    execution->waiters = waiter;
}

void execution_stop_waiting(struct execution *execution, struct waiter *waiter)
{
    for (struct waiter **link = &execution->waiters; *link; link = &(*link)->next)
        if (*link == waiter) {
            *link = waiter->next;
            return;
        }
}

static void stop(struct execution *execution, bool running)
{
    cordon_error err;
    if (execution->state == EXECUTION_QUEUED) {
        error_set(&err, CORDON_EGONE, "draining", "the daemon stopped before it ran");
        fail(execution, &err);
    } else if (running)
        execution_cancel(execution);
}

void executions_stop(struct api *api, bool running)
{
    for (unsigned i = 0; i < EXECUTION_BUCKETS; i++)
        for (struct execution *execution = api->executions[i], *next; execution; execution = next) {
            execution_ref(execution);
            stop(execution, running);
            next = execution->next;
            execution_unref(execution);
        }
}

json_t *execution_json(const struct execution *execution)
{
    return json_pack("{s:s, s:s, s:s?, s:s, s:n, s:b}", "id", execution->id, "state",
                     execution->state == EXECUTION_QUEUED ? "queued" : "running", "language",
                     execution->request->language, "created_at", execution->created_at, "status", "success", 0);
}

/* A text that may end within a character, or name a file that is no UTF-8. */
static json_t *any_text(const char *text)
{
    size_t length;
    auto_free char *repaired = utf8_repair(text, strlen(text), &length);
    return repaired ? json_stringn(repaired, length) : NULL;
}

json_t *result_of_failure(const char *id, const char *created_at, const char *language, const cordon_error *err)
{
    const char *status = status_of_failure(err);
    return json_pack("{s:s, s:s, s:s?, s:s, s:s, s:b, s:n, s:n, s:s, s:s, s:b, s:b, s:n, s:n, s:o, s:{s:s, s:s, s:o, "
                     "s:o}, s:[], s:[], s:[], s:n}",
                     "id", id, "state", "done", "language", language, "created_at", created_at, "status", status,
                     "success", 0, "exit_code", "signal", "stdout", "", "stderr", "", "stdout_truncated", 0,
                     "stderr_truncated", 0, "value", "compile", "reason", any_text(err->text), "error", "type",
                     err->step, "category", status, "message", any_text(err->text), "hint", any_text(err->hint),
                     "denials", "redactions", "files", "tests");
}
