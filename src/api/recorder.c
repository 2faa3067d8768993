/* Owns the runs that have been answered and are not in the store yet, and the one work item that writes them down in
 * their order. The loop adds and takes back; the thread only reads a run's request, its result and its account. */
#include "api/recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "api/execution.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "service/log.h"
#include "service/metrics.h"

/* No run is begun while more than this waits. With larger bounds a disk that does not answer costs more memory; with
 * smaller ones, a short delay of the disk refuses callers. */
#define WAITING_RUNS  8192
#define WAITING_BYTES ((size_t)256 << 20)
#define CATCH_UP_MS   200

struct recorder {
    struct api *api;
    struct work_item item;
    bool busy, ran;
    struct execution *first, **last; /* added since the item was begun */
    struct execution *batch;         /* the item's */
    size_t count, bytes;             /* of both */
    uint64_t added;
    pthread_mutex_t lock;
    pthread_cond_t progress;
    uint64_t written; /* under the lock */
};

static void write_batch(struct work_item *item);
static void written(struct work_item *item);

struct recorder *recorder_new(struct api *api)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    pthread_condattr_t attributes;
    if (!recorder)
        return NULL;
    recorder->api = api;
    recorder->item = (struct work_item){.run = write_batch, .done = written};
    recorder->last = &recorder->first;
    pthread_mutex_init(&recorder->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&recorder->progress, &attributes);
    pthread_condattr_destroy(&attributes);
    return recorder;
}

static void write_one(struct recorder *recorder, struct execution *execution)
{
    cordon_error err = {0};
    auto_free char *asked = execution_text(execution);
    struct store_run run = {execution->id, execution->key, asked, execution->told, &execution->account};
    int code = asked && execution->told ? store_finish(recorder->api->store, &run, &err) : error_nomem(&err);
    if (code < 0) {
        metrics_unrecorded();
        log_error("unrecorded", &err);
    }
    pthread_mutex_lock(&recorder->lock);
    recorder->written++;
    pthread_cond_broadcast(&recorder->progress);
    pthread_mutex_unlock(&recorder->lock);
}

static void write_batch(struct work_item *item)
{
    struct recorder *recorder = (struct recorder *)((char *)item - offsetof(struct recorder, item));
    for (struct execution *execution = recorder->batch; execution; execution = execution->next_unrecorded)
        write_one(recorder, execution);
    recorder->ran = true;
}

static void begin(struct recorder *recorder)
{
    if (recorder->busy || !recorder->first)
        return;
    recorder->busy = true;
    recorder->ran = false;
    recorder->batch = recorder->first;
    recorder->first = NULL;
    recorder->last = &recorder->first;
    work_submit(recorder->api->disk, &recorder->item);
}

static void give_back(struct recorder *recorder)
{
    for (struct execution *execution = recorder->batch, *next; execution; execution = next) {
        next = execution->next_unrecorded;
        recorder->count--;
        recorder->bytes -= execution_bytes(execution);
        kept_recorded(execution);
    }
    recorder->batch = NULL;
}

/* The item of a daemon that ends is given back without having run. */
static void written(struct work_item *item)
{
    struct recorder *recorder = (struct recorder *)((char *)item - offsetof(struct recorder, item));
    if (!recorder->ran)
        write_batch(item);
    give_back(recorder);
    recorder->busy = false;
    if (recorder->api->disk)
        begin(recorder);
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder)
        return;
    recorder->batch = recorder->first;
    write_batch(&recorder->item);
    give_back(recorder);
    pthread_cond_destroy(&recorder->progress);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

void recorder_add(struct recorder *recorder, struct execution *execution)
{
    execution->next_unrecorded = NULL;
    *recorder->last = execution;
    recorder->last = &execution->next_unrecorded;
    recorder->count++;
    recorder->bytes += execution_bytes(execution);
    recorder->added++;
    begin(recorder);
}

int recorder_check(const struct recorder *recorder, cordon_error *err)
{
    if (recorder->count < WAITING_RUNS && recorder->bytes < WAITING_BYTES)
        return 0;
    error_set(err, CORDON_ESYSTEM, "store", "%zu runs that have ended wait to be recorded", recorder->count);
    return error_hint(err, "the disk of the data directory is too slow, or does not answer");
}

uint64_t recorder_ticket(const struct recorder *recorder)
{
    return recorder->added;
}

void recorder_wait(struct recorder *recorder, uint64_t ticket)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CATCH_UP_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&recorder->lock);
    while (recorder->written < ticket && pthread_cond_timedwait(&recorder->progress, &recorder->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&recorder->lock);
}
