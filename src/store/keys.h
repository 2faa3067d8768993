/* API keys: kept as hashes beside the ledger, each with what it may do. */
#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include "plan/limits.h"
#include "store/store.h"

enum key_scope { KEY_RUN = 1 << 0, KEY_SESSION = 1 << 1, KEY_READ = 1 << 2, KEY_ADMIN = 1 << 3 };

#define KEY_TEXT_MAX 96

struct api_key {
    char id[17]; /* not secret: names it in logs and lists */
    char name[65];
    uint32_t scopes;
    unsigned concurrent, per_minute; /* 0: no bound */
    uint64_t cpu_s_per_day;          /* 0: no bound */
    struct limits ceilings;          /* 0: none; the most that its requests may ask for */
    char isolation[65], network[65]; /* words it may ask for, joined by commas; "": any */
    bool fresh;                      /* its runs share no interpreter's layout: always `warm: false` */
    uint64_t created_s, expires_s;   /* Unix time; expires 0: never */
};

/* Makes one like `key` (id and created_s are set), and the text that is shown once and stored nowhere. */
int keys_new(struct store *store, struct api_key *key, char text[KEY_TEXT_MAX], cordon_error *err);
/* The caller frees *keys. */
int keys_list(struct store *store, struct api_key **keys, size_t *count, cordon_error *err);
int keys_remove(struct store *store, const char *id, cordon_error *err);
/* The key that this text is; CORDON_ENOTFOUND when it is none, was removed or has expired. Compares in constant time,
 * and sees changes by other processes within a second. */
int keys_find(struct store *store, const char *text, struct api_key *key, cordon_error *err);
bool keys_exist(struct store *store);
/* The same from memory alone, for a thread that must never wait for the disk; another calls keys_refresh() at least
 * once a second. Keys that were not read for 30 s are an error. */
int keys_known(struct store *store, const char *text, struct api_key *key, cordon_error *err);
int keys_refresh(struct store *store, cordon_error *err);

#endif
