/* What the daemon tells of itself: languages, limits, health, metrics, and its own contract. */
#include <stdlib.h>
#include <string.h>

#include "api/execution.h"
#include "api/readiness.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "service/metrics.h"

/* docs/openapi.json; tools/embed makes it a C file. */
extern const char openapi_text[];

void handle_openapi(struct call *call)
{
    http_answer(call->http, 200, "application/json", openapi_text, strlen(openapi_text));
}

void handle_root(struct call *call)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s}", "name", "cordon", "version", cordon_version(), "openapi", "/openapi.json");
    answer_json(call, 200, json);
    json_decref(json);
}

/* The engine may run a language to find its version, and the warden may be busy, so a thread asks. */
struct asking {
    struct work_item item;
    struct call *call; /* NULL: its client has left */
    cordon_engine *engine;
    int (*ask)(cordon_engine *engine, char **json, cordon_error *err);
    void (*tell)(struct call *call, const struct asking *asking);
    char *json;
    cordon_error err;
};

static void ask(struct work_item *item)
{
    struct asking *asking = (struct asking *)item;
    asking->ask(asking->engine, &asking->json, &asking->err);
}

static void tell(struct work_item *item)
{
    struct asking *asking = (struct asking *)item;
    if (asking->call) {
        http_wait(asking->call->http, NULL, NULL);
        asking->tell(asking->call, asking);
    }
    cordon_free(asking->json);
    free(asking);
}

static void on_left(void *context)
{
    struct asking *asking = context;
    asking->call = NULL;
}

static void ask_engine(struct call *call, int (*how)(cordon_engine *engine, char **json, cordon_error *err),
                       void (*then)(struct call *call, const struct asking *asking))
{
    struct asking *asking = calloc(1, sizeof *asking);
    if (!asking) {
        problem_answer(call->http, 503, "out_of_memory", "out of memory");
        return;
    }
    *asking = (struct asking){
        .item = {.run = ask, .done = tell}, .call = call, .engine = call->api->engine, .ask = how, .tell = then};
    error_set(&asking->err, CORDON_EGONE, "daemon", "the daemon is about to stop");
    http_wait(call->http, on_left, asking);
    work_submit(call->api->work, &asking->item);
}

static void tell_languages(struct call *call, const struct asking *asking)
{
    if (asking->json)
        answer_text(call, 200, asking->json);
    else
        problem_from(call->http, &asking->err);
}

void handle_languages(struct call *call)
{
    ask_engine(call, cordon_languages, tell_languages);
}

void handle_environments(struct call *call)
{
    answer_text(call, 200,
                "{\"items\":[{\"id\":\"host\",\"description\":\"what is installed on the daemon's machine, "
                "read-only\"}],\"next_cursor\":null}");
}

/* Those that are set. */
static json_t *limits_object(const struct limits *limits)
{
    json_t *object = json_object();
    for (int i = 0; i < LIMIT_COUNT; i++) {
        int64_t value = limits->value[i];
        if (!value)
            continue;
        json_t *json = value == LIMIT_UNLIMITED ? json_string("unlimited")
                       : i == LIMIT_CPUS        ? json_real((double)value / 1000)
                                                : json_integer(value);
        json_object_set_new(object, limit_name((enum limit)i), json);
    }
    return object;
}

void handle_limits(struct call *call)
{
    static const char *const names[] = {"lightweight", "standard", "heavy"};
    const struct api *api = call->api;
    json_t *profiles = json_object();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct limits limits = {0};
        if (limits_complete(&limits, names[i], NULL) == 0)
            json_object_set_new(profiles, names[i], limits_object(&limits));
    }
    auto_free char *rules = redact_rules_json(api->rules);
    const struct limits ceilings = config_ceilings(api->config);
    json_t *json =
        json_pack("{s:o, s:o, s:b, s:I, s:o*}", "profiles", profiles, "ceilings", limits_object(&ceilings),
                  "unlimited_allowed", api->config->allow_unlimited, "body_bytes", (json_int_t)api->config->body_bytes,
                  "sanitize", rules ? json_loads(rules, 0, NULL) : NULL);
    json_t *own = limits_object(&call->caller.key.ceilings);
    if (!call->caller.anonymous || json_object_size(own))
        json_object_set(json, "key_ceilings", own);
    json_decref(own);
    answer_json(call, 200, json);
    json_decref(json);
}

void handle_healthz(struct call *call)
{
    answer_text(call, 200, "{\"status\":\"ok\"}");
}

void handle_readyz(struct call *call)
{
    const struct api *api = call->api;
    cordon_error err;
    if (api->draining)
        problem_answer(call->http, 503, "draining", "the daemon is about to stop");
    else if (!engine_alive(api))
        problem_answer(call->http, 503, "engine_gone", "the warden has ended");
    else if (store_check(api->store, &err) < 0)
        problem_error(call->http, 503, "store", &err);
    else if (readiness_refusal(api))
        problem_error(call->http, 503, "not_ready", readiness_refusal(api));
    else {
        json_t *json = readiness_json(api);
        answer_json(call, 200, json);
        json_decref(json);
    }
}

static void tell_metrics(struct call *call, const struct asking *asking)
{
    struct api *api = call->api;
    auto_buf struct buf text = {0};
    json_t *pools = asking->json ? json_loads(asking->json, 0, NULL) : NULL;
    struct metrics_now now = {.running = admission_running(api->admission),
                              .queued = admission_queued(api->admission),
                              .connections = http_server_connections(api->server),
                              .memory_bytes = admission_memory(api->admission),
                              .loop = loop_load(api->loop),
                              .pools = pools};
    for (int kind = 0; kind < BUDGET_COUNT && kind < METRICS_BUDGETS; kind++) {
        now.held[kind].budget = budget_name((enum budget_kind)kind);
        now.held[kind].held = budget_held(api->budget, (enum budget_kind)kind);
        now.held[kind].most = budget_most(api->budget, (enum budget_kind)kind);
    }
    metrics_text(&now, &text);
    http_answer(call->http, 200, "text/plain; version=0.0.4; charset=utf-8", buf_text(&text), text.length);
    json_decref(pools);
}

void handle_metrics(struct call *call)
{
    ask_engine(call, cordon_pools, tell_metrics);
}
