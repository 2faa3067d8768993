/* Owns the one thread that writes, its transactions, and the promise of what is on the disk. Rows are committed in
 * groups without waiting for the disk, then forced to it together: at once when somebody waits, else within a fraction
 * of a second. The head's file follows only then, so that it never knows of a row that a power cut could take back.
 *
 * What cannot be written stays queued and is tried again; who waits for it is told, and nothing new is accepted. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/internal.h"
#include "store/place.h"
#include "store/reserve.h"

#define GROUP_RUNS 256
#define GROUP_US   20000
#define GATHER_US  10000
#define SETTLE_US  100000
#define RETRY_US   500000
#define LEAVE_US   5000000 /* how long a store that is closed tries to write what it still has */
#define ROOM_BYTES ((uint64_t)1 << 20)

int writer_load_head(struct writer *writer)
{
    auto_statement sqlite3_stmt *last =
        db_statement(&writer->db, "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1");
    int code = last ? sqlite3_step(last) : SQLITE_ERROR;
    if (code == SQLITE_ROW) {
        writer->head.seq = (uint64_t)sqlite3_column_int64(last, 0);
        snprintf(writer->head.hash, sizeof writer->head.hash, "%s", db_text(last, 1));
        return SQLITE_OK;
    }
    writer->head = (struct head){.hash = HEAD_NONE};
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int load_kept_bytes(struct writer *writer)
{
    sqlite3_int64 bytes = 0;
    int code = db_number(&writer->db, "SELECT coalesce(sum(size), 0) FROM blobs", &bytes);
    writer->kept_bytes = (uint64_t)bytes;
    return code;
}

/* Those that somebody waits for leave the queue: they were not accepted. */
static void fail(struct writer *writer, const cordon_error *err)
{
    pthread_mutex_lock(&writer->lock);
    writer->failing = true;
    writer->failure = *err;
    writer->retry_us = clock_us() + RETRY_US;
    struct job *last = NULL;
    for (struct job **at = &writer->first; *at;) {
        struct job *job = *at;
        if (!job->waits) {
            last = job;
            at = &job->next;
            continue;
        }
        *at = job->next;
        writer->count--;
        writer->bytes -= job->bytes;
        job->done = true;
        job->code = err->code;
        job->err = *err;
    }
    writer->last = last;
    if (!last)
        writer->committed = writer->given;
    pthread_cond_broadcast(&writer->progress);
    pthread_mutex_unlock(&writer->lock);
}

static struct job *next_job(struct writer *writer, const struct job *after)
{
    pthread_mutex_lock(&writer->lock);
    struct job *job = after ? after->next : writer->first;
    pthread_mutex_unlock(&writer->lock);
    return job;
}

/* A run that is there already is its caller's mistake, and no reason to hold up the others. */
static int write_one(struct writer *writer, struct job *job)
{
    int code = rows_write(writer, job);
    if ((code & 0xff) != SQLITE_CONSTRAINT || !job->waits)
        return code;
    job->code = error_set(&job->err, CORDON_EINVAL, "store", "run %s was accepted before", job->record.id);
    return SQLITE_OK;
}

static int write_group(struct writer *writer, struct job **last, size_t *count)
{
    uint64_t deadline = clock_us() + GROUP_US;
    int code = db_run(&writer->db, "BEGIN IMMEDIATE");
    *last = NULL;
    *count = 0;
    for (struct job *job; code == SQLITE_OK && (job = next_job(writer, *last)); *last = job, ++*count) {
        if (*count == GROUP_RUNS || (*count && clock_us() > deadline))
            break;
        code = write_one(writer, job);
        if (code != SQLITE_OK)
            break;
    }
    return code == SQLITE_OK ? db_run(&writer->db, "COMMIT") : code;
}

/* Takes what was committed out of the queue. One that somebody waits for is freed by who waits. */
static void release_group(struct writer *writer, struct job *last, size_t count)
{
    pthread_mutex_lock(&writer->lock);
    struct job *job = writer->first, *end = last->next;
    writer->first = end;
    if (!end)
        writer->last = NULL;
    writer->count -= count;
    /* Later ones that are not in the queue have failed. */
    writer->committed = end ? last->ticket : writer->given;
    writer->failing = false;
    while (job != end) {
        struct job *next = job->next;
        writer->bytes -= job->bytes;
        if (!job->waits)
            job_free(job);
        else if (job->code < 0)
            job->done = true;
        job = next;
    }
    pthread_cond_broadcast(&writer->progress);
    pthread_mutex_unlock(&writer->lock);
}

void writer_undo(struct writer *writer)
{
    if (!sqlite3_get_autocommit(writer->db.handle))
        db_run(&writer->db, "ROLLBACK");
    /* Asked rather than remembered: a commit that failed late may have gone through. */
    writer_load_head(writer);
    load_kept_bytes(writer);
}

static void commit_group(struct writer *writer)
{
    cordon_error err = {0};
    struct job *last;
    size_t count;
    /* What could not be undone must not be written over. */
    int code = writer->failing ? writer_load_head(writer) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = write_group(writer, &last, &count);
    if (code != SQLITE_OK) {
        db_error_of(&writer->db, code, "writing the ledger", &err);
        writer_undo(writer);
        fail(writer, &err);
        return;
    }
    if (count)
        release_group(writer, last, count);
    if (!writer->dirty_us)
        writer->dirty_us = clock_us();
}

/* The log's file stays the same as long as this connection is open. It has no locks that closing it would drop. */
static int sync_log(struct store *store)
{
    struct writer *writer = &store->writer;
    if (writer->wal < 0) {
        writer->wal = openat(store->dir, PLACE_DATABASE "-wal", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (writer->wal < 0 || fsync(store->dir) < 0)
            return -1;
    }
    return fdatasync(writer->wal);
}

static void break_down(struct writer *writer, int sys_errno)
{
    cordon_error err = {0};
    error_sys(&err, sys_errno, "store", "forcing the ledger to the disk");
    error_hint(&err, "check the disk, then start again");
    fail(writer, &err);
    pthread_mutex_lock(&writer->lock);
    writer->broken = true;
    pthread_cond_broadcast(&writer->progress);
    pthread_mutex_unlock(&writer->lock);
}

static void settle(struct store *store)
{
    struct writer *writer = &store->writer;
    cordon_error err = {0};
    pthread_mutex_lock(&writer->lock);
    uint64_t committed = writer->committed;
    pthread_mutex_unlock(&writer->lock);
    if (writer->dirty_us && sync_log(store) < 0) {
        break_down(writer, errno);
        return;
    }
    writer->dirty_us = 0;
    bool behind = writer->head.seq != writer->written.seq;
    int code = behind ? head_write(store->dir, &writer->head, &err) : 0;
    if (code < 0 && (err.sys_errno == ENOSPC || err.sys_errno == EDQUOT))
        db_error_of(&writer->db, SQLITE_FULL, "writing the ledger's head", &err);
    if (behind && code == 0)
        writer->written = writer->head;
    pthread_mutex_lock(&writer->lock);
    writer->settled = committed;
    pthread_cond_broadcast(&writer->progress);
    pthread_mutex_unlock(&writer->lock);
    if (code < 0)
        fail(writer, &err);
}

/* With nothing to write, only a try tells whether something could be. */
static void probe(struct store *store)
{
    struct writer *writer = &store->writer;
    cordon_error err = {0};
    struct statvfs space;
    if (fstatvfs(store->dir, &space) == 0 && (uint64_t)space.f_bavail * space.f_frsize < ROOM_BYTES) {
        writer->retry_us = clock_us() + RETRY_US;
        return;
    }
    if (writer_load_head(writer) != SQLITE_OK ||
        db_run(&writer->db, "UPDATE alive SET count = count + 1") != SQLITE_OK) {
        db_error(&writer->db, "writing the ledger", &err);
        fail(writer, &err);
        return;
    }
    writer->dirty_us = clock_us();
    pthread_mutex_lock(&writer->lock);
    writer->failing = false;
    pthread_mutex_unlock(&writer->lock);
}

enum task { TASK_NONE, TASK_COMMIT, TASK_SETTLE, TASK_PROBE, TASK_RETAIN, TASK_ERASE, TASK_LEAVE };

/* What to do at this moment; with TASK_NONE, *wake_us is when to look again (0: when there is something new). */
static enum task choose(const struct store *store, uint64_t now, uint64_t *wake_us)
{
    const struct writer *writer = &store->writer;
    *wake_us = 0;
    if (writer->erasing)
        return TASK_ERASE;
    if (writer->broken)
        return writer->closing ? TASK_LEAVE : TASK_NONE;
    bool unsettled = writer->dirty_us || writer->settled < writer->committed;
    if (writer->failing) {
        /* What was committed before has to reach the disk all the same: somebody may wait for it. */
        if (unsettled)
            return TASK_SETTLE;
        *wake_us = writer->retry_us;
        if (now < writer->retry_us)
            return TASK_NONE;
        return writer->first ? TASK_COMMIT : writer->closing ? TASK_LEAVE : TASK_PROBE;
    }
    bool wanted = writer->wanted > writer->settled && writer->committed >= writer->wanted;
    if (unsettled && (wanted || now >= writer->dirty_us + SETTLE_US))
        return TASK_SETTLE;
    uint64_t settle_us = unsettled ? writer->dirty_us + SETTLE_US : UINT64_MAX;
    if (writer->first) {
        uint64_t commit_us = writer_is_due(writer) ? 0 : writer->first->queued_us + GATHER_US;
        *wake_us = commit_us < settle_us ? commit_us : settle_us;
        return now >= commit_us ? TASK_COMMIT : TASK_NONE;
    }
    if (writer->closing)
        return unsettled ? TASK_SETTLE : TASK_LEAVE;
    if (retain_is_due(store))
        return TASK_RETAIN;
    *wake_us = unsettled ? settle_us : writer->next_sweep_us;
    return TASK_NONE;
}

static enum task wait_for_task(struct store *store)
{
    struct writer *writer = &store->writer;
    uint64_t wake_us;
    enum task task;
    pthread_mutex_lock(&writer->lock);
    while ((task = choose(store, clock_us(), &wake_us)) == TASK_NONE) {
        const struct timespec until = {.tv_sec = (time_t)(wake_us / 1000000),
                                       .tv_nsec = (long)(wake_us % 1000000) * 1000};
        if (wake_us)
            pthread_cond_timedwait(&writer->work, &writer->lock, &until);
        else
            pthread_cond_wait(&writer->work, &writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    return task;
}

static void retain(struct store *store)
{
    struct writer *writer = &store->writer;
    cordon_error err = {0};
    int code = retain_step(store);
    if (code < 0) {
        db_error_of(&writer->db, -code, "removing old texts", &err);
        writer_undo(writer);
        fail(writer, &err);
        return;
    }
    if (!writer->dirty_us)
        writer->dirty_us = clock_us();
}

static void *writer_main(void *context)
{
    struct store *store = context;
    struct writer *writer = &store->writer;
    uint64_t leave_us = 0;
    for (;;) {
        enum task task = wait_for_task(store);
        if (writer->closing && !leave_us)
            leave_us = clock_us() + LEAVE_US;
        if (task == TASK_LEAVE || (leave_us && clock_us() > leave_us))
            return NULL;
        if (task == TASK_COMMIT)
            commit_group(writer);
        else if (task == TASK_SETTLE)
            settle(store);
        else if (task == TASK_PROBE)
            probe(store);
        else if (task == TASK_ERASE)
            writer_erase_next(store);
        else
            retain(store);
    }
}

/* A table that is behind its head has lost rows; writing on would hide that. */
static int check_head(struct store *store, cordon_error *err)
{
    struct writer *writer = &store->writer;
    struct head *head = &writer->written;
    int code = head_read(store->dir, head, err);
    if (code < 0 && code != CORDON_ENOTFOUND)
        return code;
    if (code == CORDON_ENOTFOUND)
        return (*head = writer->head, head_write(store->dir, head, err));
    if (head->seq <= writer->head.seq)
        return 0;
    error_set(err, CORDON_ESYSTEM, "store", "the ledger in %s ends with row %llu, but %llu were written", store->path,
              (unsigned long long)writer->head.seq, (unsigned long long)head->seq);
    return error_hint(err, "rows were removed: put back a copy, or see docs/LEDGER.md on going on without them");
}

void writer_init(struct writer *writer)
{
    pthread_condattr_t attributes;
    writer->wal = -1;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->work, &attributes);
    pthread_cond_init(&writer->progress, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Signals are the business of the thread that opened the store. */
static int start_thread(struct store *store)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&store->writer.thread, NULL, writer_main, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

int writer_start(struct store *store, cordon_error *err)
{
    struct writer *writer = &store->writer;
    int code = db_open(&writer->db, store->path, DB_WRITE, err);
    if (code == 0)
        code = db_set_ceiling(&writer->db, store->most_bytes, err);
    if (code < 0)
        return code;
    if (store->reserve)
        reserve_make(store->dir);
    if (writer_load_head(writer) != SQLITE_OK || load_kept_bytes(writer) != SQLITE_OK)
        return db_error(&writer->db, "reading the ledger's end", err);
    code = check_head(store, err);
    if (code < 0)
        return code;
    code = start_thread(store);
    return code ? error_sys(err, code, "store", "starting the thread that writes") : 0;
}

void writer_stop(struct store *store)
{
    struct writer *writer = &store->writer;
    if (writer->thread) {
        pthread_mutex_lock(&writer->lock);
        writer->closing = true;
        pthread_cond_signal(&writer->work);
        pthread_mutex_unlock(&writer->lock);
        pthread_join(writer->thread, NULL);
    }
    while (writer->first) {
        struct job *job = writer->first;
        writer->first = job->next;
        job_free(job);
    }
    pthread_cond_destroy(&writer->work);
    pthread_cond_destroy(&writer->progress);
    pthread_mutex_destroy(&writer->lock);
    cleanup_close(&writer->wal);
    db_close(&writer->db);
}
