/* Owns how a run is erased while the store cannot be written, because its disk is full or it has reached its ceiling:
 * before everything that waits to be written, with the reserve, and so that the room becomes the disk's again. */
#include <string.h>

#include "base/cleanup.h"
#include "store/internal.h"
#include "store/reserve.h"

/* Pages that were erased are given back in this many steps of 2 MiB at most. */
#define GIVE_BACK "PRAGMA incremental_vacuum(512)"

bool writer_is_failing(struct store *store)
{
    struct writer *writer = &store->writer;
    pthread_mutex_lock(&writer->lock);
    bool failing = writer->failing && !writer->broken;
    pthread_mutex_unlock(&writer->lock);
    return failing;
}

int writer_erase_now(struct store *store, const char *id, cordon_error *err)
{
    struct writer *writer = &store->writer;
    struct erasing erasing = {.id = id};
    pthread_mutex_lock(&writer->lock);
    erasing.next = writer->erasing;
    writer->erasing = &erasing;
    pthread_cond_signal(&writer->work);
    while (!erasing.done)
        pthread_cond_wait(&writer->progress, &writer->lock);
    pthread_mutex_unlock(&writer->lock);
    if (erasing.code < 0 && err)
        *err = erasing.err;
    return erasing.code;
}

/* What still waits to be written keeps its row only. */
static void forget_waiting(struct writer *writer, const char *id)
{
    pthread_mutex_lock(&writer->lock);
    for (struct job *job = writer->first; job; job = job->next)
        if (job->kind == JOB_FINISH && !strcmp(job->record.id, id))
            record_drop_texts(&job->record);
    pthread_mutex_unlock(&writer->lock);
}

static int erase(struct writer *writer, const char *id)
{
    int code = db_run(&writer->db, "BEGIN IMMEDIATE");
    if (code == SQLITE_OK)
        code = rows_drop_texts(writer, id);
    return code == SQLITE_OK ? db_run(&writer->db, "COMMIT") : code;
}

static void checkpoint(struct writer *writer)
{
    db_run(&writer->db, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static int erase_with_reserve(struct store *store, const char *id, cordon_error *err)
{
    struct writer *writer = &store->writer;
    forget_waiting(writer, id);
    checkpoint(writer);
    int code = erase(writer, id);
    if (code != SQLITE_OK) {
        writer_undo(writer);
        reserve_release(store->dir);
        checkpoint(writer);
        code = erase(writer, id);
    }
    int failed = code == SQLITE_OK ? 0 : db_error_of(&writer->db, code, "erasing a run", err);
    if (failed)
        writer_undo(writer);
    checkpoint(writer);
    db_run(&writer->db, GIVE_BACK);
    checkpoint(writer);
    if (store->reserve)
        reserve_make(store->dir);
    return failed;
}

void writer_erase_next(struct store *store)
{
    struct writer *writer = &store->writer;
    cordon_error err = {0};
    pthread_mutex_lock(&writer->lock);
    struct erasing *erasing = writer->erasing;
    writer->erasing = erasing->next;
    pthread_mutex_unlock(&writer->lock);
    int code = erase_with_reserve(store, erasing->id, &err);
    pthread_mutex_lock(&writer->lock);
    erasing->code = code;
    erasing->err = err;
    erasing->done = true;
    if (code == 0)
        writer->retry_us = 0; /* there may be room */
    pthread_cond_broadcast(&writer->progress);
    pthread_mutex_unlock(&writer->lock);
}
