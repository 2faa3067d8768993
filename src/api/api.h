/* The daemon's API: what HTTP calls do. Everything here runs in the loop's thread, but for what is handed to `work`. */
#ifndef API_API_H
#define API_API_H

#include <cordon/engine.h>
#include <jansson.h>

#include "api/admission.h"
#include "api/budget.h"
#include "api/match.h"
#include "http/problem.h"
#include "http/server.h"
#include "output/redact.h"
#include "service/config.h"
#include "service/work.h"
#include "store/keys.h"
#include "store/store.h"

struct execution;
struct batch;

#define EXECUTION_BUCKETS 1024

struct api {
    struct config *config;
    struct loop *loop;
    struct http_server *server;
    cordon_engine *engine;
    struct store *store;
    struct redact_rules *rules;
    struct work *work; /* what takes time: judging tests, asking the warden */
    struct work *disk; /* what waits for the data directory, which may not answer */
    struct recorder *recorder;
    struct admission *admission;
    struct budget *budget;
    enum sanitize sanitize; /* where a request says nothing */
    bool draining;
    struct execution *executions[EXECUTION_BUCKETS];
    struct execution *oldest_done, **newest_done; /* those that are kept for a while */
    unsigned live_count;
    struct execution *unrecorded, **last_unrecorded; /* told, but not in the store yet */
    struct loop_timer record_timer;
    struct execution *quiet; /* under way, and their output is not watched yet */
    struct loop_timer watcher;
    struct batch *batches;
    struct spending *spendings;    /* processor time of keys today */
    struct remembered *remembered; /* idempotency keys */
    struct loop_timer second;
    struct readiness *readiness;
};

/* Who calls: a key, or somebody on this machine without one. */
struct caller {
    bool anonymous;
    struct api_key key;
};

struct route;

struct call {
    struct api *api;
    struct http_call *http;
    const struct route *route;
    struct caller caller;
    char id[33];                /* from the path */
    char request_id[17];        /* names it in logs */
    struct hold open, body;     /* that it is there, and its body */
    struct budget_refusal over; /* why there was no room for its body */
    struct hold held;           /* of its answer */
    struct execution *shown;    /* a reference: the answer is its result, or follows it */
};

/* routes.c: the callbacks of the server */
void api_accept(void *context, struct http_call *http);
bool api_room(void *context, struct http_call *http, size_t body_bytes);
void api_refuse(void *context, struct http_call *http);
void api_handle(void *context, struct http_call *http);
void api_done(void *context, struct http_call *http);

/* guard.c: answers and returns false when the call may not go on */
bool guard_origin(struct call *call);
/* Nobody may call without a key. */
bool guard_needs_keys(const struct api *api);
bool guard_caller(struct call *call, uint32_t scope);
/* Whose runs the caller may see: its own key's ("" without one), or NULL for everybody's. */
const char *caller_sees(const struct caller *caller);
/* Whether the caller's key, or this key, has used up its processor time for today. */
bool guard_spending(struct api *api, const struct caller *caller);
bool guard_spent(struct api *api, const struct api_key *key);
/* Says when it may go on. */
void guard_tell_quota(struct call *call);
/* Why its runs are refused. */
int guard_quota_error(cordon_error *err);
/* Whether runs can be taken from this caller now; answers when not. */
bool guard_runs(struct call *call);
void guard_spend(struct api *api, const char *key, uint64_t cpu_us);
/* Reads what keys have used today; before the loop runs. */
int guard_open(struct api *api, cordon_error *err);
void guard_free(struct api *api);

/* 32 or 16 hexadecimal digits that nobody can guess. */
void api_random_id(char *text, size_t digits);
/* "2026-01-31T12:00:00.000Z" */
void api_time_text(char text[32]);
void answer_json(struct call *call, int status, const json_t *value);
void answer_text(struct call *call, int status, const char *json);
/* Takes the text, and counts it as held until it is sent. */
void answer_large(struct call *call, char *json);
/* Which of the types the client would rather have; the first where it does not say. */
size_t call_prefers(const struct call *call, const char *const *types, size_t count);

/* Each second: forgets those that ended long ago. */
void batches_tick(struct api *api);
void batches_free(struct api *api);
/* The warden is there. */
bool engine_alive(const struct api *api);

/* Handlers */
void handle_execute(struct call *call);
void handle_executions_post(struct call *call);
void handle_executions_list(struct call *call);
void handle_execution_get(struct call *call);
void handle_execution_delete(struct call *call);
void handle_execution_events(struct call *call);
void handle_execution_report(struct call *call);
void handle_tests(struct call *call);
void handle_batches_post(struct call *call);
void handle_batch_get(struct call *call);
void handle_languages(struct call *call);
void handle_environments(struct call *call);
void handle_limits(struct call *call);
void handle_healthz(struct call *call);
void handle_readyz(struct call *call);
void handle_metrics(struct call *call);
void handle_openapi(struct call *call);
void handle_root(struct call *call);

#endif
