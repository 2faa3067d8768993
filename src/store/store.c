/* Owns the life of a store, and the calls that write. Called by the daemon and by the commands that look at history. */
#include "store/store.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "store/internal.h"
#include "store/place.h"

static int open_parts(struct store *store, const struct store_options *options, cordon_error *err)
{
    int code = place_open(options->data_dir, !options->read_only, &store->path, &store->dir, err);
    if (code == 0 && !options->read_only)
        code = place_lock(store->dir, store->path, &store->lock_fd, err);
    if (code == 0 && !options->read_only)
        code = writer_start(store, err);
    if (code == 0)
        code = db_open(&store->reader, store->path, DB_READ, err);
    return code == 0 ? keys_open(store, err) : code;
}

int store_open(const struct store_options *options, struct store **store, cordon_error *err)
{
    struct store *made = calloc(1, sizeof *made);
    if (!made)
        return error_nomem(err);
    made->dir = made->lock_fd = -1;
    made->keep = options->keep;
    made->max_age_s = options->max_age_s;
    made->max_bytes = options->max_bytes;
    made->most_bytes = options->most_bytes;
    made->reserve = options->reserve;
    made->read_only = options->read_only;
    pthread_mutex_init(&made->read_lock, NULL);
    writer_init(&made->writer);
    pthread_mutex_init(&made->keys.lock, NULL);
    pthread_mutex_init(&made->keys.file_lock, NULL);
    int code = open_parts(made, options, err);
    if (code < 0) {
        store_close(made);
        return code;
    }
    *store = made;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    keys_close(store);
    db_close(&store->reader);
    writer_stop(store);
    pthread_mutex_destroy(&store->read_lock);
    pthread_mutex_destroy(&store->keys.lock);
    pthread_mutex_destroy(&store->keys.file_lock);
    cleanup_close(&store->lock_fd);
    cleanup_close(&store->dir);
    free(store->path);
    free(store);
}

static int give(struct store *store, enum job_kind kind, const struct store_run *run, bool wait, cordon_error *err)
{
    struct record record;
    if (store->read_only)
        return error_set(err, CORDON_ESTATE, "store", "the store was opened for reading only");
    int code = record_make(&record, run, store->keep, err);
    return code < 0 ? code : writer_give(store, kind, &record, wait, err);
}

int store_accept(struct store *store, const struct store_run *run, cordon_error *err)
{
    struct store_run begun = *run;
    begun.result = NULL;
    return give(store, JOB_ACCEPT, &begun, true, err);
}

int store_finish(struct store *store, const struct store_run *run, cordon_error *err)
{
    auto_record struct record accepted = {0};
    struct store_run ended = *run;
    if (!run->result)
        return error_set(err, CORDON_EINVAL, "store", "run %s has no result to record", run->id);
    /* One that nobody remembers but the store: of a daemon that died. */
    if ((!run->key || !run->request) && read_record(store, run->id, NULL, &accepted, NULL) == 0) {
        ended.key = run->key ? run->key : accepted.key;
        ended.request = run->request ? run->request : accepted.texts[TEXT_REQUEST].bytes;
    }
    return give(store, JOB_FINISH, &ended, false, err);
}

int store_erase(struct store *store, const char *id, const char *key, cordon_error *err)
{
    auto_record struct record known = {0};
    int code = read_record(store, id, key, &known, err);
    if (code < 0)
        return code;
    if (!known.entry)
        return error_set(err, CORDON_ESTATE, "store", "run %s goes on; only what has ended can be erased", id);
    const struct store_run run = {.id = id, .key = key};
    code = writer_is_failing(store) ? CORDON_ESYSTEM : give(store, JOB_ERASE, &run, true, err);
    return code < 0 && writer_is_failing(store) ? writer_erase_now(store, id, err) : code;
}
