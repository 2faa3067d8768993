/* Owns API keys: their texts, which are stored nowhere, and finding the key that a text is. Looks keys up in memory and
 * asks the file once a second whether anything was changed, by whichever process. Every doubt means no key. */
#include "store/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "store/key_rows.h"

#define PREFIX        "cordon_"
#define ID_LENGTH     16
#define SECRET_LENGTH 43
#define SECRET_BYTES  32
#define TEXT_LENGTH   (sizeof PREFIX - 1 + ID_LENGTH + 1 + SECRET_LENGTH)
#define REFRESH_US    1000000
/* Keys in memory are believed so long without the file. With a larger value a removed key works longer while the disk
 * does not answer; with a smaller one, callers with keys are refused sooner then. */
#define STALE_US   30000000
#define ALL_SCOPES (KEY_RUN | KEY_SESSION | KEY_READ | KEY_ADMIN)

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int keys_open(struct store *store, cordon_error *err)
{
    return db_open(&store->keys.db, store->path, DB_READ, err);
}

void keys_close(struct store *store)
{
    db_close(&store->keys.db);
    free(store->keys.rows);
}

/* 32 bytes in 43 characters; the last carries four bits. */
static void encode_secret(const uint8_t bytes[SECRET_BYTES], char text[SECRET_LENGTH + 1])
{
    for (int i = 0; i < SECRET_LENGTH; i++) {
        unsigned bit = (unsigned)i * 6, at = bit / 8, shift = bit % 8;
        unsigned two = (unsigned)bytes[at] << 8 | (at + 1 < SECRET_BYTES ? bytes[at + 1] : 0);
        text[i] = alphabet[two >> (10 - shift) & 63];
    }
    text[SECRET_LENGTH] = '\0';
}

static int make_text(struct api_key *key, char text[KEY_TEXT_MAX], cordon_error *err)
{
    uint8_t id[ID_LENGTH / 2], secret[SECRET_BYTES];
    char encoded[SECRET_LENGTH + 1];
    if (getrandom(id, sizeof id, 0) != sizeof id || getrandom(secret, sizeof secret, 0) != sizeof secret)
        return error_set(err, CORDON_ESYSTEM, "keys", "the kernel gives no random numbers");
    hex_text(id, sizeof id, key->id);
    encode_secret(secret, encoded);
    snprintf(text, KEY_TEXT_MAX, PREFIX "%s_%s", key->id, encoded);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(encoded, sizeof encoded);
    return 0;
}

static int check_key(const struct api_key *key, cordon_error *err)
{
    if (!*key->name)
        return error_set(err, CORDON_EINVAL, "keys", "a key needs a name");
    if (!key->scopes || key->scopes & ~(uint32_t)ALL_SCOPES)
        return error_set(err, CORDON_EINVAL, "keys", "a key needs scopes; expected some of run, session, read, admin");
    return 0;
}

/* Keys are few and seldom changed: a connection for each change, which SQLite itself puts in order with the daemon's.
 */
static int change(struct store *store, int (*apply)(struct db *db, const void *what, cordon_error *err),
                  const void *what, cordon_error *err)
{
    struct db db;
    int code = db_open(&db, store->path, DB_BESIDE, err);
    if (code == 0 && db_run(&db, "PRAGMA synchronous=FULL") != SQLITE_OK)
        code = db_error(&db, "changing the keys", err);
    if (code == 0)
        code = apply(&db, what, err);
    db_close(&db);
    pthread_mutex_lock(&store->keys.lock);
    store->keys.loaded = false;
    pthread_mutex_unlock(&store->keys.lock);
    return code;
}

static int apply_insert(struct db *db, const void *row, cordon_error *err)
{
    return key_rows_insert(db, row, err);
}

static int apply_delete(struct db *db, const void *id, cordon_error *err)
{
    return key_rows_delete(db, id, err);
}

int keys_new(struct store *store, struct api_key *key, char text[KEY_TEXT_MAX], cordon_error *err)
{
    struct key_row row = {.key = *key};
    int code = check_key(key, err);
    if (code == 0)
        code = make_text(&row.key, text, err);
    if (code < 0)
        return code;
    row.key.created_s = (uint64_t)time(NULL);
    sha256_of(text, strlen(text), row.hash);
    code = change(store, apply_insert, &row, err);
    if (code < 0)
        explicit_bzero(text, KEY_TEXT_MAX);
    else
        *key = row.key;
    return code;
}

int keys_remove(struct store *store, const char *id, cordon_error *err)
{
    return change(store, apply_delete, id, err);
}

static bool is_fresh(struct key_cache *cache, uint64_t within_us)
{
    pthread_mutex_lock(&cache->lock);
    bool fresh = cache->loaded && clock_us() - cache->checked_us < within_us;
    pthread_mutex_unlock(&cache->lock);
    return fresh;
}

/* Takes the rows. */
static void replace(struct key_cache *cache, struct key_row *rows, size_t count)
{
    pthread_mutex_lock(&cache->lock);
    free(cache->rows);
    cache->rows = rows;
    cache->count = count;
    pthread_mutex_unlock(&cache->lock);
}

static void believe(struct key_cache *cache, uint64_t read_us)
{
    pthread_mutex_lock(&cache->lock);
    cache->loaded = true;
    cache->checked_us = read_us;
    cache->failure = (cordon_error){0};
    pthread_mutex_unlock(&cache->lock);
}

static void lose(struct key_cache *cache, const cordon_error *why)
{
    pthread_mutex_lock(&cache->lock);
    cache->loaded = false;
    cache->failure = *why;
    pthread_mutex_unlock(&cache->lock);
}

/* The file is asked for its version before it is read: a change in between is seen the next time. */
static int read_file(struct key_cache *cache, cordon_error *err)
{
    uint64_t now = clock_us();
    struct key_row *rows = NULL;
    size_t count = 0;
    sqlite3_int64 version;
    if (db_number(&cache->db, "PRAGMA data_version", &version) != SQLITE_OK)
        return db_error(&cache->db, "reading the keys", err);
    bool same = is_fresh(cache, UINT64_MAX) && version == cache->data_version;
    int code = same ? 0 : key_rows_load(&cache->db, &rows, &count, err);
    if (code < 0)
        return code;
    if (!same)
        replace(cache, rows, count);
    cache->data_version = version;
    believe(cache, now);
    return 0;
}

/* Unless the file was read less than `within_us` ago. */
static int refresh(struct key_cache *cache, uint64_t within_us, cordon_error *err)
{
    cordon_error why = {0};
    pthread_mutex_lock(&cache->file_lock);
    int code = is_fresh(cache, within_us) ? 0 : read_file(cache, &why);
    if (code < 0)
        lose(cache, &why);
    pthread_mutex_unlock(&cache->file_lock);
    if (code < 0 && err)
        *err = why;
    return code;
}

int keys_refresh(struct store *store, cordon_error *err)
{
    return refresh(&store->keys, 0, err);
}

int keys_list(struct store *store, struct api_key **keys, size_t *count, cordon_error *err)
{
    struct key_cache *cache = &store->keys;
    int code = refresh(cache, 0, err);
    if (code < 0)
        return code;
    pthread_mutex_lock(&cache->lock);
    struct api_key *list = calloc(cache->count + 1, sizeof *list);
    *count = cache->count;
    for (size_t i = 0; list && i < cache->count; i++)
        list[i] = cache->rows[i].key;
    pthread_mutex_unlock(&cache->lock);
    if (!list)
        return error_nomem(err);
    *keys = list;
    return 0;
}

static bool same_hash(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES])
{
    volatile uint8_t difference = 0;
    for (int i = 0; i < SHA256_BYTES; i++)
        difference = difference | (a[i] ^ b[i]);
    return difference == 0;
}

static bool is_key_text(const char *text)
{
    const char *id = text + sizeof PREFIX - 1, *secret = id + ID_LENGTH + 1;
    return strnlen(text, TEXT_LENGTH + 1) == TEXT_LENGTH && !memcmp(text, PREFIX, sizeof PREFIX - 1) &&
           strspn(id, "0123456789abcdef") == ID_LENGTH && id[ID_LENGTH] == '_' &&
           strspn(secret, alphabet) == SECRET_LENGTH;
}

/* An unknown id is compared too, so that time does not tell which ids there are. */
static const struct key_row *match(const struct key_cache *cache, const char *text)
{
    static const struct key_row nobody;
    const struct key_row *row = &nobody;
    uint8_t hash[SHA256_BYTES];
    for (size_t i = 0; i < cache->count; i++)
        if (!memcmp(cache->rows[i].key.id, text + sizeof PREFIX - 1, ID_LENGTH))
            row = &cache->rows[i];
    sha256_of(text, TEXT_LENGTH, hash);
    bool same = same_hash(hash, row->hash) && row != &nobody;
    uint64_t now = (uint64_t)time(NULL);
    return same && (!row->key.expires_s || now < row->key.expires_s) ? row : NULL;
}

static int not_read(const struct key_cache *cache, cordon_error *err)
{
    if (cache->failure.code && err)
        *err = cache->failure;
    if (cache->failure.code)
        return cache->failure.code;
    error_set(err, CORDON_ESYSTEM, "keys", "the keys could not be read for %d s", STALE_US / 1000000);
    return error_hint(err, "the disk of the data directory does not answer");
}

static int find(struct key_cache *cache, const char *text, uint64_t within_us, struct api_key *key, cordon_error *err)
{
    pthread_mutex_lock(&cache->lock);
    bool known = cache->loaded && clock_us() - cache->checked_us < within_us;
    const struct key_row *row = known ? match(cache, text) : NULL;
    int code = 0;
    if (row)
        *key = row->key;
    else if (known)
        code = error_set(err, CORDON_ENOTFOUND, "keys", "there is no such key, or it has expired");
    else
        code = not_read(cache, err);
    pthread_mutex_unlock(&cache->lock);
    return code;
}

int keys_known(struct store *store, const char *text, struct api_key *key, cordon_error *err)
{
    if (!is_key_text(text))
        return error_set(err, CORDON_ENOTFOUND, "keys", "this is no key");
    return find(&store->keys, text, STALE_US, key, err);
}

int keys_find(struct store *store, const char *text, struct api_key *key, cordon_error *err)
{
    if (!is_key_text(text))
        return error_set(err, CORDON_ENOTFOUND, "keys", "this is no key");
    int code = refresh(&store->keys, REFRESH_US, err);
    return code < 0 ? code : find(&store->keys, text, UINT64_MAX, key, err);
}

bool keys_exist(struct store *store)
{
    struct key_cache *cache = &store->keys;
    /* When they cannot be read, there may be some. */
    if (refresh(cache, REFRESH_US, NULL) < 0)
        return true;
    pthread_mutex_lock(&cache->lock);
    bool exist = cache->count;
    pthread_mutex_unlock(&cache->lock);
    return exist;
}
