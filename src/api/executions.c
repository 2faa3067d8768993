/* Runs that are asked for by their id: those under way are here, the others in the store, which is read in a thread. */
#include <stdlib.h>
#include <string.h>

#include "api/execution.h"
#include "api/filters.h"
#include "api/recorder.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"
#include "explain/debug.h"
#include "output/json_text.h"
#include "output/utf8.h"

/* Bytes of memory for each byte that is kept of a run: it is read, becomes a JSON value, and then JSON, with six bytes
 * for a control character. With less, reading many at once may take more memory than the budget says. */
#define READ_FACTOR 12

/* A question to the store, and what becomes of the answer. */
struct question {
    struct work_item item;
    struct call *call; /* NULL: its client has left */
    struct api *api;
    char id[ID_BYTES + 1], key[17];
    bool any_key;
    struct store_query query;
    uint64_t bytes; /* of what is kept of the run */
    char *language, *status, *cursor, *of_key;
    int (*ask)(struct question *question);
    void (*answer)(struct call *call, struct question *question);
    uint64_t ticket; /* what had ended when it was asked */
    size_t offset;
    bool sse, plain;
    char *text, *request;
    struct http_text *known; /* the Result, where the daemon still has it */
    struct events *events;   /* what the run delivered, made of its Result */
    cordon_error err;
    int code;
};

static const char *key_of(const struct question *question)
{
    return question->any_key ? NULL : question->key;
}

/* Reading a large run is begun only when there is room for it: first its size is asked for. */

static void ask_size(struct work_item *item)
{
    struct question *question = (struct question *)item;
    recorder_wait(question->api->recorder, question->ticket);
    question->code = store_size(question->api->store, question->id, &question->bytes, &question->err);
}

static void ask(struct work_item *item)
{
    struct question *question = (struct question *)item;
    recorder_wait(question->api->recorder, question->ticket);
    question->code = question->ask(question);
}

static void answer(struct work_item *item)
{
    struct question *question = (struct question *)item;
    if (question->call) {
        http_wait(question->call->http, NULL, NULL);
        if (question->code == CORDON_ENOTFOUND)
            problem_answer(question->call->http, 404, "not_found", "no run with this id is known");
        else if (question->code < 0)
            problem_from(question->call->http, &question->err);
        else
            question->answer(question->call, question);
    }
    free(question->language);
    free(question->status);
    free(question->cursor);
    free(question->of_key);
    free(question->text);
    free(question->request);
    events_unref(question->events);
    http_text_unref(question->known);
    free(question);
}

static void on_left(void *context)
{
    struct question *question = context;
    question->call = NULL;
}

static struct question *question_new(struct call *call, int (*how)(struct question *),
                                     void (*then)(struct call *, struct question *))
{
    struct question *question = calloc(1, sizeof *question);
    if (!question) {
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
        return NULL;
    }
    *question = (struct question){.item = {.run = ask, .done = answer},
                                  .call = call,
                                  .api = call->api,
                                  .ask = how,
                                  .answer = then,
                                  .code = CORDON_EGONE};
    error_set(&question->err, CORDON_EGONE, "daemon", "the daemon is about to stop");
    memcpy(question->id, call->id, sizeof question->id);
    memcpy(question->key, call->caller.key.id, sizeof question->key);
    question->any_key = !caller_sees(&call->caller);
    return question;
}

static void submit(struct call *call, struct question *question)
{
    http_wait(call->http, on_left, question);
    question->ticket = recorder_ticket(call->api->recorder);
    work_submit(call->api->disk, &question->item);
}

static void submit_sized(struct work_item *item)
{
    struct question *question = (struct question *)item;
    struct call *call = question->call;
    question->item = (struct work_item){.run = ask, .done = answer};
    if (question->code < 0 || !call)
        answer(&question->item);
    else if (held_take(call, BUDGET_ANSWERS, READ_FACTOR * question->bytes, &call->held)) {
        question->code = CORDON_EGONE;
        work_submit(question->api->disk, &question->item);
    } else {
        question->call = NULL; /* it is answered */
        answer(&question->item);
    }
}

/* As submit(), for what may be large. */
static void submit_large(struct call *call, struct question *question)
{
    question->item = (struct work_item){.run = ask_size, .done = submit_sized};
    submit(call, question);
}

static int ask_result(struct question *question)
{
    return store_result(question->api->store, question->id, key_of(question), &question->text, &question->err);
}

static int ask_both(struct question *question)
{
    int code = ask_result(question);
    if (code == 0)
        store_request(question->api->store, question->id, key_of(question), &question->request, NULL);
    return code;
}

static void tell_text(struct call *call, struct question *question)
{
    answer_large(call, take_ptr(&question->text));
}

void handle_execution_get(struct call *call)
{
    struct execution *execution = execution_find(call->api, call->id, caller_sees(&call->caller));
    if (execution && execution->result)
        answer_result(call, execution);
    else if (execution) {
        json_t *json = execution_json(execution);
        answer_json(call, 200, json);
        json_decref(json);
    } else {
        struct question *question = question_new(call, ask_result, tell_text);
        if (question)
            submit_large(call, question);
    }
}

/* Deleting: what runs is cancelled, what has ended is erased but for its row. */

static int ask_erase(struct question *question)
{
    return store_erase(question->api->store, question->id, key_of(question), &question->err);
}

static void tell_erased(struct call *call, struct question *question)
{
    (void)question;
    http_answer(call->http, 204, NULL, NULL, 0);
}

void handle_execution_delete(struct call *call)
{
    struct execution *execution = execution_find(call->api, call->id, caller_sees(&call->caller));
    if (execution && execution->state != EXECUTION_DONE) {
        execution_ref(execution);
        execution_cancel(execution);
        answer_accepted(call, call->id, execution);
        execution_unref(execution);
        return;
    }
    struct question *question = question_new(call, ask_erase, tell_erased);
    if (!question)
        return;
    if (execution)
        execution_forget(execution);
    submit(call, question);
}

/* Following a run that may have ended. */

static bool read_offset(struct call *call, size_t *offset)
{
    const char *text = http_query(call->http, "offset");
    uint64_t value = 0;
    if (text && !match_number(text, 0, SIZE_MAX, &value)) {
        problem_answer(call->http, 400, "bad_request", "offset is '%.32s'; expected a number of bytes", text);
        return false;
    }
    *offset = value;
    return true;
}

/* A result does not tell how its output is written; the request does, where it is kept. */
static bool is_base64(const struct question *question)
{
    json_t *request = question->request ? json_loads(question->request, JSON_ALLOW_NUL, NULL) : NULL;
    const char *encoding = json_string_value(json_object_get(request, "output_encoding"));
    bool is = encoding && !strcmp(encoding, "base64");
    json_decref(request);
    return is;
}

static void add_output(struct events *events, int stream, const json_t *text)
{
    size_t length = json_string_length(text);
    bool bad;
    auto_free char *bytes = events->base64 ? base64_decode(json_string_value(text), length, &length, &bad) : NULL;
    if (bytes || !events->base64)
        events_add(events, stream, bytes ? bytes : json_string_value(text), length);
}

static void on_reader_left(void *context)
{
    (void)context;
}

static void follow_stored(struct call *call, const struct question *question, struct events *events,
                          struct http_text *text)
{
    uint64_t bytes = text->length + events_bytes(events) + EVENTS_FOLLOWER_BYTES;
    events_end(events, text);
    if (held_take(call, BUDGET_ANSWERS, bytes, &call->held) &&
        !events_follow(events, call->http, question->sse, question->id, question->offset, on_reader_left, NULL))
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
}

/* As if it had just been delivered: all of stdout, then all of stderr. NULL for a run that has no status yet. */
static struct events *events_of(const struct question *question, bool *ended)
{
    static const char *const names[] = {"stdout", "stderr"};
    json_t *result = json_loads(question->text, JSON_ALLOW_NUL, NULL);
    *ended = json_is_string(json_object_get(result, "status"));
    struct events *events = *ended ? events_new(is_base64(question)) : NULL;
    for (int i = 0; i < 2 && events; i++) {
        const json_t *text = json_object_get(result, names[i]);
        events->kept = true;
        if (json_is_string(text))
            add_output(events, i + 1, text);
    }
    json_decref(result);
    return events;
}

static int ask_events(struct question *question)
{
    bool ended = false;
    int code = ask_both(question);
    if (code < 0)
        return code;
    question->events = events_of(question, &ended);
    return ended && !question->events ? error_nomem(&question->err) : 0;
}

static void tell_events(struct call *call, struct question *question)
{
    size_t length = strlen(question->text);
    if (!question->events) {
        problem_answer(call->http, 409, "not_here", "this run is under way in a daemon that is gone");
        return;
    }
    struct http_text *text = http_text_new(take_ptr(&question->text), length);
    if (text)
        follow_stored(call, question, question->events, text);
    else
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
    http_text_unref(text);
}

void handle_execution_events(struct call *call)
{
    struct execution *execution = execution_find(call->api, call->id, caller_sees(&call->caller));
    size_t offset;
    static const char *const types[] = {"text/event-stream", "application/x-ndjson"};
    bool sse = call_prefers(call, types, ARRAY_LEN(types)) == 0;
    if (!read_offset(call, &offset))
        return;
    if (execution) {
        answer_events(call, execution, sse, offset, false);
        return;
    }
    struct question *question = question_new(call, ask_events, tell_events);
    if (!question)
        return;
    question->offset = offset;
    question->sse = sse;
    submit_large(call, question);
}

/* The debug report. */

static char *report_text(const char *result_text, const char *request_text, bool plain)
{
    json_t *result = json_loads(result_text, JSON_ALLOW_NUL, NULL);
    json_t *request = request_text ? json_loads(request_text, JSON_ALLOW_NUL, NULL) : NULL;
    json_t *report = result ? debug_report(result, request) : NULL;
    char *text = !report ? NULL : plain ? debug_text(report) : json_text(report, NULL);
    json_decref(report);
    json_decref(request);
    json_decref(result);
    return text;
}

/* In a thread: a result is read and searched, however large it is. */
static int ask_report(struct question *question)
{
    int code = question->known ? 0 : ask_both(question);
    if (code < 0)
        return code;
    char *report =
        report_text(question->known ? question->known->bytes : question->text, question->request, question->plain);
    free(question->text);
    question->text = report;
    return report ? 0 : error_nomem(&question->err);
}

static void tell_report(struct call *call, struct question *question)
{
    http_answer(call->http, 200, question->plain ? "text/plain; charset=utf-8" : "application/json", question->text,
                strlen(question->text));
}

void handle_execution_report(struct call *call)
{
    static const char *const types[] = {"application/json", "text/plain"};
    const struct execution *execution = execution_find(call->api, call->id, caller_sees(&call->caller));
    if (execution && execution->state != EXECUTION_DONE) {
        problem_answer(call->http, 409, "running", "the run has not ended yet");
        return;
    }
    struct question *question = question_new(call, ask_report, tell_report);
    if (!question)
        return;
    question->plain = call_prefers(call, types, ARRAY_LEN(types)) == 1;
    if (execution && execution->text && execution->asked && !execution->told &&
        execution->request_held.amount < REQUEST_KEPT_BYTES) {
        question->known = http_text_ref(execution->text);
        question->request = execution_text(execution);
        submit(call, question);
    } else
        submit_large(call, question);
}

/* The list. */

static int ask_list(struct question *question)
{
    int code = question->query.key && question->any_key
                   ? store_check_key(question->api->store, question->query.key, &question->err)
                   : 0;
    return code < 0 ? code : store_list(question->api->store, &question->query, &question->text, &question->err);
}

static char *copy_query(const struct call *call, const char *name)
{
    const char *text = http_query(call->http, name);
    return text ? strdup(text) : NULL;
}

void handle_executions_list(struct call *call)
{
    const char *limit = http_query(call->http, "limit");
    uint64_t count = 0;
    if (limit && !match_number(limit, 1, 1000, &count)) {
        problem_answer(call->http, 400, "bad_request", "limit is '%.32s'; expected a number from 1 to 1000", limit);
        return;
    }
    const char *wanted = http_query(call->http, "key"), *own = caller_sees(&call->caller);
    if (wanted && own && strcmp(wanted, own) != 0) {
        answer_text(call, 200, "{\"items\":[],\"next_cursor\":null}");
        return;
    }
    const char *status = http_query(call->http, "status"), *language = http_query(call->http, "language");
    cordon_error err = {0};
    if ((status && filter_check_status(status, &err) < 0) ||
        (language && filter_find_language(call->api->engine->catalog, language, &language, &err) < 0)) {
        problem_error(call->http, 400, "bad_request", &err);
        return;
    }
    struct question *question = question_new(call, ask_list, tell_text);
    if (!question)
        return;
    question->language = language ? strdup(language) : NULL;
    question->status = copy_query(call, "status");
    question->cursor = copy_query(call, "cursor");
    question->of_key = question->any_key ? copy_query(call, "key") : strdup(question->key);
    question->query = (struct store_query){.key = question->of_key,
                                           .language = question->language,
                                           .status = question->status,
                                           .cursor = question->cursor,
                                           .limit = (unsigned)count};
    submit(call, question);
}
