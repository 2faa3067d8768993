/* The inside of a store, shared by its files. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/db.h"
#include "store/head.h"
#include "store/keys.h"
#include "store/record.h"
#include "store/store.h"

enum job_kind { JOB_ACCEPT, JOB_FINISH, JOB_ERASE };

/* Something to be written. It stays in the queue until it is committed, so that a reader finds it in one of the two. */
struct job {
    enum job_kind kind;
    struct record record;
    size_t bytes;
    uint64_t ticket; /* its place in the order of all */
    bool waits;      /* somebody waits for it: it fails rather than being tried again */
    bool done;
    int code;
    cordon_error err;
    uint64_t queued_us;
    struct job *next;
};

/* Somebody waits for a run to be erased although nothing else can be written. */
struct erasing {
    struct erasing *next;
    const char *id;
    bool done;
    int code;
    cordon_error err;
};

/* Under `lock`, but where the writer alone uses it. */
struct writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, progress;
    struct job *first, *last;
    struct erasing *erasing;
    size_t count, bytes;
    uint64_t given, committed, settled; /* tickets: the latest that was queued, is in the file, is on the disk */
    uint64_t sought;                    /* somebody is about to read this one */
    uint64_t wanted;                    /* somebody waits until this one is on the disk */
    bool closing;
    bool failing, broken; /* broken: the kernel lost what it was told to write, nothing more can be promised */
    cordon_error failure;
    /* The writer's own. */
    struct db db;
    struct head head;
    int wal;
    uint64_t dirty_us;      /* since when commits are not on the disk; 0: all are */
    uint64_t kept_bytes;    /* of texts */
    uint64_t next_sweep_us; /* when age is looked at again */
    uint64_t swept_bytes;   /* of which nothing could be removed */
    uint64_t retry_us;      /* while failing: when it is tried again */
    struct head written;    /* what the head's file says */
};

struct key_cache {
    pthread_mutex_t file_lock; /* of reading the file, which may take as long as the disk does; taken first */
    struct db db;
    sqlite3_int64 data_version;
    pthread_mutex_t lock; /* of the rest; held for moments */
    struct key_row *rows;
    size_t count;
    uint64_t checked_us; /* when the file was read, or found unchanged */
    bool loaded;
    cordon_error failure; /* why it is not loaded; code 0: it was changed, or never read */
};

struct store {
    char *path;
    int dir, lock_fd;
    enum store_keep keep;
    uint64_t max_age_s, max_bytes, most_bytes;
    bool reserve, read_only;
    pthread_mutex_t read_lock;
    struct db reader;
    struct writer writer;
    struct key_cache keys;
};

/* writer.c */
void writer_init(struct writer *writer);
int writer_start(struct store *store, cordon_error *err);
/* Writes what is queued, if it can be written. */
void writer_stop(struct store *store);
/* Reads the ledger's last row into writer->head; 0 or a SQLite code. */
int writer_load_head(struct writer *writer);

/* Goes back to what is in the file. */
void writer_undo(struct writer *writer);

/* erase.c */
bool writer_is_failing(struct store *store);
/* Erases a run while the store cannot be written otherwise. */
int writer_erase_now(struct store *store, const char *id, cordon_error *err);
/* In the writer's thread: does it for the next who waits. */
void writer_erase_next(struct store *store);

/* queue.c. Takes the record. With `wait` it returns when it is on the disk, or why it cannot be. */
int writer_give(struct store *store, enum job_kind kind, struct record *record, bool wait, cordon_error *err);
/* Waits a moment for what was given to be committed, for who lists what was. */
void writer_catch_up(struct store *store);
/* A run that is not committed yet: calls `use` with it under the lock; false when there is none of this id. */
bool writer_find(struct store *store, const char *id, void (*use)(void *context, const struct record *record),
                 void *context);

void job_free(struct job *job);
/* Runs that end within a moment are written together. Whether what is queued need not wait for more. */
bool writer_is_due(const struct writer *writer);

/* rows.c: single rows, within a transaction of the writer's. 0 or a SQLite code. */
int rows_write(struct writer *writer, const struct job *job);
/* Drops a run's texts, and whatever content nobody else points to. */
int rows_drop_texts(struct writer *writer, const char *id);

/* retain.c: removes some old texts; 1 when there is more to do, 0 when not, or a negative SQLite code. */
int retain_step(struct store *store);
bool retain_is_due(const struct store *store);

/* read.c: what is known of a run, committed or not; `entry` is NULL while it goes on. */
int read_record(struct store *store, const char *id, const char *key, struct record *record, cordon_error *err);

/* keys.c */
int keys_open(struct store *store, cordon_error *err);
void keys_close(struct store *store);

#endif
