/* What is kept of runs: a ledger whose rows are chained by their hashes, and the texts they point to, by content. One
 * SQLite file in the data directory; one thread writes, and commits in groups, so that no run waits for the disk.
 *
 * Any thread may call any function. A store that cannot write any more (disk full, file damaged) accepts nothing from
 * then on and says why; what it had accepted is not lost. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <cordon/error.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct account;
struct store;

/* How much of code, inputs and output is kept: nothing beyond the ledger's row and its hashes (NONE keeps not even
 * hashes of output), hashes, or everything. */
enum store_keep { STORE_KEEP_NONE, STORE_KEEP_HASH, STORE_KEEP_FULL };

struct store_options {
    const char *data_dir; /* made with mode 0700 if it is not there */
    enum store_keep keep;
    uint64_t max_age_s, max_bytes; /* of kept texts; 0: no bound */
    uint64_t most_bytes;           /* of the whole file, ledger included, which is never removed; 0: no bound */
    bool reserve;                  /* keep some of the disk, so that runs can be erased when it is full */
    bool read_only;                /* for commands that only look, beside a daemon that writes */
};

int store_open(const struct store_options *options, struct store **store, cordon_error *err);
/* Commits everything first. */
void store_close(struct store *store);

/* Borrowed for the call. */
struct store_run {
    const char *id;
    const char *key;      /* id of the API key, or ""; NULL for store_finish: as it was accepted, like the request */
    const char *request;  /* its JSON, with every secret value replaced by null: what a replay starts from */
    const json_t *result; /* as delivered, redacted; NULL while it runs */
    const struct account *account; /* what its cells used; NULL: nothing */
};

/* A run that somebody will ask for later. It is on the disk when this returns. */
int store_accept(struct store *store, const struct store_run *run, cordon_error *err);
/* A run has ended, announced before or not. On the disk within a fraction of a second; returns before that, but may
 * wait for room while the disk does not answer, 10 s at most. */
int store_finish(struct store *store, const struct store_run *run, cordon_error *err);
/* Waits until everything finished so far is on the disk. */
int store_flush(struct store *store, cordon_error *err);
/* 0 when runs can be accepted, or why not. */
int store_check(struct store *store, cordon_error *err);
/* Ids of runs that were accepted and never finished: those of a daemon that died. NULL-terminated; the caller frees
 * each and the list. */
int store_unfinished(struct store *store, char ***ids, cordon_error *err);

/* JSON texts, freed by the caller; CORDON_ENOTFOUND for an unknown id. `key` restricts to one key's runs; NULL: all. */
int store_result(struct store *store, const char *id, const char *key, char **json, cordon_error *err);
int store_request(struct store *store, const char *id, const char *key, char **json, cordon_error *err);

/* The whole id of the one run whose id is, or begins with, `start`; freed by the caller. */
int store_find(struct store *store, const char *start, char **id, cordon_error *err);

/* Bytes of the texts that are kept of a run, 0 where there are none: what reading it costs. */
int store_size(struct store *store, const char *id, uint64_t *bytes, cordon_error *err);

struct store_query {
    const char *key, *language, *status; /* NULL: any */
    const char *since, *until;           /* as in `created_at`: not before, and before; NULL: any */
    const char *cursor;                  /* from an earlier answer, or NULL */
    unsigned limit;                      /* 0: 50; at most 1000 */
};

/* An error when a key of this id neither exists nor has runs. */
int store_check_key(struct store *store, const char *id, cordon_error *err);
/* {"items": [Result without outputs, newest first], "next_cursor": text or null} */
int store_list(struct store *store, const struct store_query *query, char **json, cordon_error *err);
/* Forgets code, inputs and output; the ledger's row stays. */
int store_erase(struct store *store, const char *id, const char *key, cordon_error *err);
/* Calls `tell` with the milliseconds of processor time that each key's runs used since then (Unix time). */
int store_spent(struct store *store, uint64_t since_s, void (*tell)(void *context, const char *key, double cpu_ms),
                void *context, cordon_error *err);

/* What checking the whole chain found. */
struct store_verdict {
    bool good;
    uint64_t rows;    /* checked */
    uint64_t bad_row; /* the first that is wrong, when not good */
    char text[256];   /* one line: "row 17 (run 3f…): its hash does not match its content" */
    char head[65];    /* hash of the last row, to be kept elsewhere */
};

/* `expected_head`: NULL, or the head that somebody kept. */
int store_verify(const char *data_dir, const char *expected_head, struct store_verdict *verdict, cordon_error *err);

#endif
