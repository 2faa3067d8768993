/* Owns the executions that can be found: those under way, those that are told but not written down yet, and for a while
 * those that ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/execution.h"
#include "api/recorder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "service/log.h"
#include "service/metrics.h"

#define KEEP_US (UINT64_C(60) * 1000000)
/* Of one caller: a small one counts as that part of what it may keep. */
#define KEEP_MAX  1000
#define PING_SECS 15
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

/* The oldest that the caller has; NULL when it has none. */
static struct execution *oldest_of(const struct api *api, const char *name)
{
    struct execution *execution = api->oldest_done;
    while (execution && strcmp(held_name(execution->key), name) != 0)
        execution = execution->next_done;
    return execution;
}

/* The caller that keeps too much, or the one that keeps most when all of them do, gives way to itself. */
static void make_room(struct api *api, const char *name)
{
    while (budget_held_by(api->budget, name, BUDGET_KEPT) > budget_most_each(api->budget, BUDGET_KEPT))
        execution_forget(oldest_of(api, name));
    while (budget_excess(api->budget, BUDGET_KEPT))
        execution_forget(oldest_of(api, budget_largest(api->budget, BUDGET_KEPT)));
}

/* A large request is in the store. */
static void drop_request(struct execution *execution)
{
    if (execution->request_held.amount < REQUEST_KEPT_BYTES)
        return;
    redactor_close(execution->redactor);
    execution->redactor = NULL;
    cordon_request_free(execution->request);
    execution->request = NULL;
    json_decref(execution->asked);
    execution->asked = NULL;
    hold_end(&execution->request_held);
}

static bool count_kept(struct execution *execution)
{
    struct budget *budget = execution->api->budget;
    const char *name = held_name(execution->key);
    uint64_t least = budget_most_each(budget, BUDGET_KEPT) / KEEP_MAX, bytes = execution_bytes(execution);
    if (!execution->output.account && !budget_hold(budget, name, BUDGET_OUTPUT, 0, &execution->output, NULL))
        return false;
    hold_count(&execution->output, BUDGET_KEPT, bytes > least ? bytes : least);
    return true;
}

static void remember(struct execution *execution)
{
    struct api *api = execution->api;
    if (!execution->lasting || !execution->result || !count_kept(execution)) {
        kept_unlist(execution);
        return;
    }
    execution->next_done = NULL;
    *api->newest_done = execution;
    api->newest_done = &execution->next_done;
    drop_request(execution);
    make_room(api, held_name(execution->key));
}

/* Found by its id until it is in the store. */
void kept_record_later(struct execution *execution)
{
    struct api *api = execution->api;
    execution->next_unrecorded = NULL;
    *api->last_unrecorded = execution;
    api->last_unrecorded = &execution->next_unrecorded;
    if (!api->record_timer.at_us)
        loop_set_timer(api->loop, &api->record_timer, clock_us() + RECORD_US);
}

void kept_recorded(struct execution *execution)
{
    json_decref(execution->told);
    execution->told = NULL;
    remember(execution);
    execution_unref(execution);
}

void executions_record(struct api *api)
{
    struct execution *execution;
    while ((execution = api->unrecorded)) {
        api->unrecorded = execution->next_unrecorded;
        if (!api->unrecorded)
            api->last_unrecorded = &api->unrecorded;
        cordon_run_free(take_ptr(&execution->run));
        log_run(execution);
        /* A request that was refused before anything ran leaves no record; a cell that ran always does. */
        if (execution->failure.code && !execution->announced && !execution->account.cells) {
            kept_recorded(execution);
            continue;
        }
        count(execution);
        recorder_add(api->recorder, execution);
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
            /* Somebody may still be reading it. */
            hold_count(&execution->output, BUDGET_OUTPUT, execution_bytes(execution));
            kept_unlist(execution);
            return;
        }
}

void executions_tick(struct api *api)
{
    static unsigned seconds;
    uint64_t now = clock_us();
    while (api->oldest_done && now - api->oldest_done->done_us > KEEP_US)
        execution_forget(api->oldest_done);
    admission_look(api->admission);
    if (++seconds % PING_SECS)
        return;
    for (unsigned i = 0; i < EXECUTION_BUCKETS; i++)
        for (struct execution *execution = api->executions[i]; execution; execution = execution->next)
            events_ping(execution->events);
}

void executions_free(struct api *api)
{
    while (api->oldest_done)
        execution_forget(api->oldest_done);
}
