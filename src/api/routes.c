/* The table of routes, and the way of a call through it: who may call at all, which route it is, who calls, and then
 * the handler. What is refused is refused before its body is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "api/api.h"
#include "api/execution.h"
#include "api/held.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "output/json_text.h"
#include "service/log.h"
#include "service/metrics.h"

struct route {
    const char *method;
    const char *path; /* "{id}" stands for an id */
    uint32_t scope;   /* 0: anybody */
    void (*handle)(struct call *call);
    bool while_draining;
};

static const struct route routes[] = {
    {"POST", "/v1/execute", KEY_RUN, handle_execute, false},
    {"POST", "/v1/executions", KEY_RUN, handle_executions_post, false},
    {"GET", "/v1/executions", KEY_READ, handle_executions_list, true},
    {"GET", "/v1/executions/{id}", KEY_READ, handle_execution_get, true},
    {"DELETE", "/v1/executions/{id}", KEY_RUN, handle_execution_delete, true},
    {"GET", "/v1/executions/{id}/events", KEY_READ, handle_execution_events, true},
    {"GET", "/v1/executions/{id}/report", KEY_READ, handle_execution_report, true},
    {"POST", "/v1/tests", KEY_RUN, handle_tests, false},
    {"POST", "/v1/batches", KEY_RUN, handle_batches_post, false},
    {"GET", "/v1/batches/{id}", KEY_READ, handle_batch_get, true},
    {"GET", "/v1/languages", KEY_READ, handle_languages, true},
    {"GET", "/v1/environments", KEY_READ, handle_environments, true},
    {"GET", "/v1/limits", KEY_READ, handle_limits, true},
    {"GET", "/healthz", 0, handle_healthz, true},
    {"GET", "/readyz", 0, handle_readyz, true},
    {"GET", "/metrics", KEY_ADMIN, handle_metrics, true},
    {"GET", "/openapi.json", 0, handle_openapi, true},
    {"GET", "/", 0, handle_root, true},
};

void api_random_id(char *text, size_t digits)
{
    uint8_t bytes[ID_BYTES / 2];
    while (getrandom(bytes, digits / 2, 0) != (ssize_t)(digits / 2))
        ;
    hex_text(bytes, digits / 2, text);
}

void api_time_text(char text[32])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t used = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + used, 32 - used, ".%03ldZ", now.tv_nsec / 1000000);
}

/* HEAD is served as GET is: libmicrohttpd leaves the body out. */
static const char *method_of(const struct http_call *http)
{
    return strcmp(http_method(http), "HEAD") == 0 ? "GET" : http_method(http);
}

static bool find_route(struct call *call)
{
    const char *path = http_path(call->http), *method = method_of(call->http);
    char allowed[64] = "";
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (!match_path(routes[i].path, path, call->id))
            continue;
        if (strcmp(routes[i].method, method) == 0) {
            call->route = &routes[i];
            return true;
        }
        size_t used = strlen(allowed);
        snprintf(allowed + used, sizeof allowed - used, "%s%s%s", used ? ", " : "", routes[i].method,
                 strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
    }
    if (*allowed) {
        http_add_header(call->http, "Allow", allowed);
        problem_answer(call->http, 405, "method_not_allowed", "this path takes %s", allowed);
    } else
        problem_answer(call->http, 404, "not_found",
                       "there is nothing at this path; /openapi.json lists what there is");
    return false;
}

/* The type is not looked at: what a body has to be is known, and pages that may not call are told by their Origin. */
static bool check_encoding(struct call *call)
{
    const char *encoding = http_header(call->http, "Content-Encoding");
    if (!encoding || !*encoding || strcasecmp(encoding, "identity") == 0)
        return true;
    problem_answer(call->http, 415, "unsupported_encoding", "a body has to come as it is, without a Content-Encoding");
    return false;
}

/* What an operator needs when everything else is taken. */
static bool is_reserved(const struct call *call)
{
    uint32_t scope = call->route->scope;
    return !scope || scope == KEY_ADMIN || (!call->caller.anonymous && call->caller.key.scopes & KEY_ADMIN);
}

void api_accept(void *context, struct http_call *http)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call) {
        problem_answer(http, 503, "out_of_memory", "out of memory");
        return;
    }
    call->api = context;
    call->http = http;
    http_set_data(http, call);
    api_random_id(call->request_id, 16);
    http_add_header(http, "X-Request-Id", call->request_id);
    if (!guard_origin(call) || !find_route(call) || !check_encoding(call))
        return;
    if (call->api->draining && !call->route->while_draining) {
        http_add_header(http, "Retry-After", "5");
        metrics_refused("draining");
        problem_answer(http, 503, "draining", "the daemon is about to stop and takes no more runs");
        return;
    }
    if (guard_caller(call, call->route->scope) && !is_reserved(call))
        held_take(call, BUDGET_CALLS, 1, &call->open);
}

bool api_room(void *context, struct http_call *http, size_t body_bytes)
{
    struct call *call = http_data(http);
    const struct api *api = context;
    if (!body_bytes)
        hold_end(&call->body);
    else if (call->body.account)
        return hold_resize(&call->body, body_bytes, &call->over);
    else
        return budget_hold(api->budget, held_name(call->caller.key.id), BUDGET_BODIES, body_bytes, &call->body,
                           &call->over);
    return true;
}

void api_refuse(void *context, struct http_call *http)
{
    struct call *call = http_data(http);
    (void)context;
    answer_over_budget(call, &call->over);
}

void api_handle(void *context, struct http_call *http)
{
    struct call *call = http_data(http);
    if (strcmp(call->route->method, "POST") != 0)
        executions_record(context); /* who asks sees what was answered before */
    call->route->handle(call);
}

void api_done(void *context, struct http_call *http)
{
    struct call *call = http_data(http);
    (void)context;
    if (!call)
        return;
    uint64_t us = clock_us() - http_began_us(http);
    const char *route = call->route ? call->route->path : "none";
    metrics_http(call->route ? call->route->method : "other", route, http_status(http), us);
    log_event(call->route && call->route->scope ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "request",
              json_pack("{s:s, s:s, s:s, s:i, s:I, s:s}", "request_id", call->request_id, "method",
                        call->route ? call->route->method : "other", "route", route, "status", http_status(http), "us",
                        (json_int_t)us, "key", call->caller.key.id));
    hold_end(&call->held);
    hold_end(&call->body);
    hold_end(&call->open);
    execution_unref(call->shown);
    free(call);
}

void answer_text(struct call *call, int status, const char *json)
{
    http_answer(call->http, status, "application/json", json, strlen(json));
}

void answer_large(struct call *call, char *json)
{
    struct http_text *text = http_text_new(json, strlen(json));
    if (!text)
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
    else if (held_take(call, BUDGET_ANSWERS, text->length, &call->held))
        http_answer_text(call->http, 200, "application/json", text);
    http_text_unref(text);
}

void answer_json(struct call *call, int status, const json_t *value)
{
    auto_free char *text = json_text(value, NULL);
    if (text)
        answer_text(call, status, text);
    else
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
}

size_t call_prefers(const struct call *call, const char *const *types, size_t count)
{
    return match_accept(http_header(call->http, "Accept"), types, count);
}
