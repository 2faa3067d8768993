/* Owns finding what a person names in part: a run by the beginning of its id, a key by its id. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "plan/word.h"
#include "store/internal.h"

/* Enough to tell that a beginning is not unique, and to show between what. */
#define SHOWN 3

static int no_such_run(const char *id, cordon_error *err)
{
    return error_set(err, CORDON_ENOTFOUND, "store", "there is no run '%s'", word_show(id).text);
}

static int not_unique(const char *start, char *const ids[SHOWN], size_t count, cordon_error *err)
{
    error_set(err, CORDON_EINVAL, "store", "'%s' begins the ids of several runs: %s, %s%s", word_show(start).text,
              ids[0], ids[1], count > 2 ? ", …" : "");
    return error_hint(err, "give more of the id");
}

static void unlock(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}
#define hold_lock(name, mutex)                                                                                         \
    __attribute__((cleanup(unlock))) pthread_mutex_t *name = (mutex);                                                  \
    pthread_mutex_lock(name)

static int read_ids(struct store *store, const char *start, char *ids[SHOWN], size_t *count, cordon_error *err)
{
    hold_lock(held, &store->read_lock);
    /* '~' is behind every character of an id. */
    auto_statement sqlite3_stmt *find =
        db_statement(&store->reader, "SELECT id FROM ledger WHERE id >= ?1 AND id < ?1 || '~' UNION "
                                     "SELECT id FROM accepted WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 3");
    int step = SQLITE_ERROR;
    if (find)
        db_bind_text(find, 1, start);
    while (find && *count < SHOWN && (step = sqlite3_step(find)) == SQLITE_ROW) {
        ids[*count] = strdup(db_text(find, 0));
        if (!ids[(*count)++])
            return error_nomem(err);
    }
    return step == SQLITE_DONE || step == SQLITE_ROW ? 0 : db_error(&store->reader, "finding a run", err);
}

int store_find(struct store *store, const char *start, char **id, cordon_error *err)
{
    char *ids[SHOWN] = {NULL};
    size_t count = 0;
    int code = read_ids(store, start, ids, &count, err);
    if (code == 0 && (!count || !*start))
        code = no_such_run(start, err);
    else if (code == 0 && count > 1 && strcmp(ids[0], start) != 0)
        code = not_unique(start, ids, count, err);
    if (code == 0)
        *id = take_ptr(&ids[0]);
    for (size_t i = 0; i < SHOWN; i++)
        free(ids[i]);
    return code;
}

/* A key that was removed has its runs still. */
static int has_runs(struct store *store, const char *key, bool *found, cordon_error *err)
{
    hold_lock(held, &store->read_lock);
    auto_statement sqlite3_stmt *find = db_statement(&store->reader, "SELECT 1 FROM ledger WHERE key = ? LIMIT 1");
    int step = SQLITE_ERROR;
    if (find) {
        db_bind_text(find, 1, key);
        step = sqlite3_step(find);
    }
    *found = step == SQLITE_ROW;
    return *found || step == SQLITE_DONE ? 0 : db_error(&store->reader, "finding a key", err);
}

int store_check_key(struct store *store, const char *id, cordon_error *err)
{
    struct api_key *keys = NULL;
    size_t count = 0;
    int code = keys_list(store, &keys, &count, err);
    bool is_known = false;
    for (size_t i = 0; code == 0 && i < count; i++)
        is_known = is_known || !strcmp(keys[i].id, id);
    free(keys);
    if (code == 0 && !is_known)
        code = has_runs(store, id, &is_known, err);
    if (code < 0 || is_known)
        return code;
    error_field(err, "/key", "there is no key with the id '%s'", word_show(id).text);
    return error_hint(err, "`cordon key ls` lists the ids");
}
