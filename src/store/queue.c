/* Owns what waits to be written, and who waits for it. Bounded: when the disk is slower than runs end, finishing a run
 * waits for room, and fails only if none comes. Called by everyone who writes; emptied by writer.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/internal.h"

#define QUEUE_RUNS  4096
#define QUEUE_BYTES ((size_t)128 << 20)
#define ROOM_US     10000000 /* how long a run that ended waits for room */
#define CATCH_UP_US 200000
/* So much is worth a transaction. */
#define GATHER_RUNS  64
#define GATHER_BYTES ((size_t)1 << 20)

/* False when the time is up. */
static bool wait_until(struct writer *writer, uint64_t deadline_us)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline_us / 1000000),
                                   .tv_nsec = (long)(deadline_us % 1000000) * 1000};
    return pthread_cond_timedwait(&writer->progress, &writer->lock, &until) != ETIMEDOUT;
}

void job_free(struct job *job)
{
    record_free(&job->record);
    free(job);
}

static int failure_of(const struct writer *writer, cordon_error *err)
{
    if (err)
        *err = writer->failure;
    return writer->failure.code;
}

static bool has_room(const struct writer *writer, size_t bytes)
{
    return !writer->count || (writer->count < QUEUE_RUNS && writer->bytes + bytes <= QUEUE_BYTES);
}

static int wait_for_room(struct writer *writer, size_t bytes, cordon_error *err)
{
    uint64_t deadline = clock_us() + ROOM_US;
    while (!has_room(writer, bytes))
        if (!wait_until(writer, deadline) && !has_room(writer, bytes)) {
            if (writer->failing)
                return failure_of(writer, err);
            return error_set(err, CORDON_ESYSTEM, "store", "%zu runs wait to be written and none was within %d s",
                             writer->count, ROOM_US / 1000000);
        }
    return 0;
}

static void append(struct writer *writer, struct job *job)
{
    job->ticket = ++writer->given;
    job->queued_us = clock_us();
    bool is_first = !writer->last;
    if (is_first)
        writer->first = job;
    else
        writer->last->next = job;
    writer->last = job;
    writer->count++;
    writer->bytes += job->bytes;
    if (is_first || writer_is_due(writer))
        pthread_cond_signal(&writer->work);
}

bool writer_is_due(const struct writer *writer)
{
    bool awaited = writer->wanted > writer->committed || writer->sought > writer->committed;
    return awaited || writer->closing || writer->count >= GATHER_RUNS || writer->bytes >= GATHER_BYTES;
}

/* The job is this thread's again when it is done or on the disk. */
static int wait_for_job(struct writer *writer, struct job *job, cordon_error *err)
{
    if (writer->wanted < job->ticket)
        writer->wanted = job->ticket;
    pthread_cond_signal(&writer->work);
    while (!job->done && writer->settled < job->ticket && !writer->broken)
        pthread_cond_wait(&writer->progress, &writer->lock);
    if (job->done && err)
        *err = job->err;
    if (job->done)
        return job->code;
    return writer->settled >= job->ticket ? 0 : failure_of(writer, err);
}

int writer_give(struct store *store, enum job_kind kind, struct record *record, bool wait, cordon_error *err)
{
    struct writer *writer = &store->writer;
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        record_free(record);
        return error_nomem(err);
    }
    *job = (struct job){.kind = kind, .record = *record, .bytes = record_bytes(record), .waits = wait};
    *record = (struct record){0};
    pthread_mutex_lock(&writer->lock);
    int code = writer->broken || (wait && writer->failing) ? failure_of(writer, err) : 0;
    if (code == 0)
        code = wait_for_room(writer, job->bytes, err);
    if (code == 0)
        append(writer, job);
    bool queued = code == 0;
    if (queued && wait)
        code = wait_for_job(writer, job, err);
    pthread_mutex_unlock(&writer->lock);
    if (!queued || wait)
        job_free(job);
    return code;
}

void writer_catch_up(struct store *store)
{
    struct writer *writer = &store->writer;
    uint64_t deadline = clock_us() + CATCH_UP_US;
    pthread_mutex_lock(&writer->lock);
    writer->sought = writer->given;
    pthread_cond_signal(&writer->work);
    for (uint64_t ticket = writer->given; writer->committed < ticket && !writer->failing;)
        if (!wait_until(writer, deadline))
            break;
    pthread_mutex_unlock(&writer->lock);
}

bool writer_find(struct store *store, const char *id, void (*use)(void *context, const struct record *record),
                 void *context)
{
    struct writer *writer = &store->writer;
    const struct record *found = NULL;
    pthread_mutex_lock(&writer->lock);
    for (const struct job *job = writer->first; job; job = job->next)
        if (job->kind == JOB_FINISH && !strcmp(job->record.id, id))
            found = &job->record;
    if (found)
        use(context, found);
    pthread_mutex_unlock(&writer->lock);
    return found != NULL;
}

int store_flush(struct store *store, cordon_error *err)
{
    struct writer *writer = &store->writer;
    if (store->read_only)
        return 0;
    pthread_mutex_lock(&writer->lock);
    uint64_t ticket = writer->given;
    if (writer->wanted < ticket)
        writer->wanted = ticket;
    pthread_cond_signal(&writer->work);
    while (writer->settled < ticket && !writer->failing && !writer->broken)
        pthread_cond_wait(&writer->progress, &writer->lock);
    int code = writer->settled < ticket ? failure_of(writer, err) : 0;
    pthread_mutex_unlock(&writer->lock);
    return code;
}

int store_check(struct store *store, cordon_error *err)
{
    struct writer *writer = &store->writer;
    if (store->read_only)
        return error_set(err, CORDON_ESTATE, "store", "the store was opened for reading only");
    pthread_mutex_lock(&writer->lock);
    int code = writer->failing || writer->broken ? failure_of(writer, err) : 0;
    pthread_mutex_unlock(&writer->lock);
    return code;
}
