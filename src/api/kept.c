/* Owns the executions that can be found: those under way, those that are told but not written down yet, and for a while
 * those that ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/execution.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "service/log.h"
#include "service/metrics.h"

#define KEEP_US    (UINT64_C(60) * 1000000)
#define KEEP_MAX   1000
#define KEEP_BYTES (64 << 20)
#define PING_SECS  15
/* The client has the processor first. */
#define RECORD_US 1000

static unsigned bucket_of(const char *id)
{
    unsigned hash = 5381;
    for (; *id; id++)
        hash = hash * 33 + (unsigned char)*id;
    return hash % EXECUTION_BUCKETS;
}

void kept_list(struct execution *execution)
{
    struct execution **bucket = &execution->api->executions[bucket_of(execution->id)];
    execution_ref(execution);
    execution->next = *bucket;
    *bucket = execution;
}

void kept_unlist(struct execution *execution)
{
    struct execution **link = &execution->api->executions[bucket_of(execution->id)];
    while (*link != execution)
        link = &(*link)->next;
    *link = execution->next;
    execution_unref(execution);
}

static void record(struct execution *execution)
{
    cordon_error err;
    auto_free char *asked = execution_text(execution);
    struct store_run run = {execution->id, execution->key, asked, execution->told, &execution->account};
    int code = asked && execution->told ? store_finish(execution->api->store, &run, &err) : error_nomem(&err);
    if (code < 0) {
        metrics_unrecorded();
        log_error("unrecorded", &err);
    }
}

static void count(const struct execution *execution)
{
    struct metrics_run run = {
        .language = execution->request->language, .status = execution->status, .account = &execution->account};
    if (execution->redactor)
        run.redaction_count = redactor_counts(execution->redactor, &run.redactions);
    metrics_run(&run);
}

static void log_run(const struct execution *execution)
{
    log_event(LOG_LEVEL_INFO, "run",
              json_pack("{s:s, s:s, s:s?, s:s, s:f}", "id", execution->id, "key", execution->key, "language",
                        execution->request->language, "status", execution->status, "wall_ms",
                        (double)execution->account.run_us / 1000));
}

static size_t bytes_of(const struct execution *execution)
{
    return strlen(execution->result) + execution->events.bytes.length;
}

static void remember(struct execution *execution)
{
    struct api *api = execution->api;
    if (!execution->lasting || !execution->result) {
        kept_unlist(execution);
        return;
    }
    execution->next_done = NULL;
    *api->newest_done = execution;
    api->newest_done = &execution->next_done;
    api->done_count++;
    api->done_bytes += bytes_of(execution);
}

/* Found by its id until it is in the store. */
void kept_record_later(struct execution *execution)
{
    struct api *api = execution->api;
    execution->next_unrecorded = NULL;
    *api->last_unrecorded = execution;
    api->last_unrecorded = &execution->next_unrecorded;
    if (!api->recorder.at_us)
        loop_set_timer(api->loop, &api->recorder, clock_us() + RECORD_US);
}

void executions_record(struct api *api)
{
    struct execution *execution;
    while ((execution = api->unrecorded)) {
        api->unrecorded = execution->next_unrecorded;
        if (!api->unrecorded)
            api->last_unrecorded = &api->unrecorded;
        cordon_run_free(take_ptr(&execution->run));
        if (!execution->failure.code || execution->announced) {
            record(execution);
            count(execution);
        }
        json_decref(execution->told);
        execution->told = NULL;
        log_run(execution);
        remember(execution);
        execution_unref(execution);
    }
}

struct execution *execution_find(struct api *api, const char *id, const char *key)
{
    struct execution *execution = api->executions[bucket_of(id)];
    while (execution && strcmp(execution->id, id) != 0)
        execution = execution->next;
    return execution && (!key || strcmp(key, execution->key) == 0) ? execution : NULL;
}

void execution_forget(struct execution *execution)
{
    struct api *api = execution->api;
    for (struct execution **link = &api->oldest_done; *link; link = &(*link)->next_done)
        if (*link == execution) {
            *link = execution->next_done;
            if (api->newest_done == &execution->next_done)
                api->newest_done = link;
            api->done_count--;
            api->done_bytes -= bytes_of(execution);
            kept_unlist(execution);
            return;
        }
}

void executions_tick(struct api *api)
{
    static unsigned seconds;
    uint64_t now = clock_us();
    while (api->oldest_done &&
           (api->done_count > KEEP_MAX || api->done_bytes > KEEP_BYTES || now - api->oldest_done->done_us > KEEP_US))
        execution_forget(api->oldest_done);
    if (++seconds % PING_SECS)
        return;
    for (unsigned i = 0; i < EXECUTION_BUCKETS; i++)
        for (struct execution *execution = api->executions[i]; execution; execution = execution->next)
            events_ping(&execution->events);
}

void executions_free(struct api *api)
{
    while (api->oldest_done)
        execution_forget(api->oldest_done);
}
