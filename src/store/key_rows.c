/* Owns the columns of the table of keys. Ceilings are an object of the limits' names, so that a new limit changes no
 * table. Called by keys.c. */
#include "store/key_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "plan/word.h"

static void cleanup_json(json_t **json)
{
    json_decref(*json);
}
#define auto_json __attribute__((cleanup(cleanup_json)))

static char *dump_ceilings(const struct limits *limits)
{
    auto_json json_t *object = json_object();
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits->value[i])
            json_object_set_new(object, limit_name(i), json_integer(limits->value[i]));
    return json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
}

/* One that this version does not know cannot be held, so that the key must not be used. */
static int parse_ceilings(const char *text, struct limits *limits)
{
    auto_json json_t *object = json_loads(text, 0, NULL);
    if (!json_is_object(object))
        return -1;
    const char *name;
    const json_t *value;
    json_object_foreach(object, name, value)
    {
        enum limit limit = limit_from_name(name);
        if (limit == LIMIT_COUNT || !json_is_integer(value) || json_integer_value(value) <= 0)
            return -1;
        limits->value[limit] = json_integer_value(value);
        limits->given |= UINT32_C(1) << limit;
    }
    return 0;
}

static int read_row(sqlite3_stmt *statement, struct key_row *row)
{
    struct api_key *key = &row->key;
    *row = (struct key_row){.key = {.scopes = (uint32_t)sqlite3_column_int64(statement, 3),
                                    .concurrent = (unsigned)sqlite3_column_int64(statement, 4),
                                    .per_minute = (unsigned)sqlite3_column_int64(statement, 5),
                                    .cpu_s_per_day = (uint64_t)sqlite3_column_int64(statement, 6),
                                    .fresh = sqlite3_column_int(statement, 10),
                                    .created_s = (uint64_t)sqlite3_column_int64(statement, 11),
                                    .expires_s = (uint64_t)sqlite3_column_int64(statement, 12)}};
    snprintf(key->id, sizeof key->id, "%s", db_text(statement, 0));
    snprintf(key->name, sizeof key->name, "%s", db_text(statement, 2));
    snprintf(key->isolation, sizeof key->isolation, "%s", db_text(statement, 8));
    snprintf(key->network, sizeof key->network, "%s", db_text(statement, 9));
    if (sqlite3_column_bytes(statement, 1) != SHA256_BYTES || parse_ceilings(db_text(statement, 7), &key->ceilings) < 0)
        return -1;
    memcpy(row->hash, sqlite3_column_blob(statement, 1), SHA256_BYTES);
    return 0;
}

static int add_row(sqlite3_stmt *statement, struct key_row **rows, size_t *count, cordon_error *err)
{
    struct key_row row, *more;
    if (read_row(statement, &row) < 0) {
        error_set(err, CORDON_ESYSTEM, "keys", "the key '%s' is damaged", word_show(db_text(statement, 0)).text);
        return error_hint(err, "remove it with `cordon key rm`, and make another");
    }
    more = reallocarray(*rows, *count + 1, sizeof **rows);
    if (!more)
        return error_nomem(err);
    *rows = more;
    more[(*count)++] = row;
    return 0;
}

int key_rows_load(struct db *db, struct key_row **rows, size_t *count, cordon_error *err)
{
    auto_statement sqlite3_stmt *all = db_statement(
        db, "SELECT id, hash, name, scopes, concurrent, per_minute, cpu_s_per_day, ceilings, isolation, network, "
            "fresh, created, expires FROM keys ORDER BY created, id");
    auto_free struct key_row *made = NULL;
    size_t made_count = 0;
    int code = all ? SQLITE_ROW : SQLITE_ERROR;
    while (code == SQLITE_ROW && (code = sqlite3_step(all)) == SQLITE_ROW) {
        int failed = add_row(all, &made, &made_count, err);
        if (failed)
            return failed;
    }
    if (code != SQLITE_DONE)
        return db_error(db, "reading the keys", err);
    *rows = take_ptr(&made);
    *count = made_count;
    return 0;
}

int key_rows_insert(struct db *db, const struct key_row *row, cordon_error *err)
{
    const struct api_key *key = &row->key;
    auto_free char *ceilings = dump_ceilings(&key->ceilings);
    if (!ceilings)
        return error_nomem(err);
    auto_statement sqlite3_stmt *insert =
        db_statement(db, "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    if (!insert)
        return db_error(db, "writing a key", err);
    db_bind_text(insert, 1, key->id);
    sqlite3_bind_blob(insert, 2, row->hash, SHA256_BYTES, SQLITE_STATIC);
    db_bind_text(insert, 3, key->name);
    const uint64_t numbers[] = {key->scopes, key->concurrent, key->per_minute, key->cpu_s_per_day};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        sqlite3_bind_int64(insert, (int)i + 4, (sqlite3_int64)numbers[i]);
    db_bind_text(insert, 8, ceilings);
    db_bind_text(insert, 9, key->isolation);
    db_bind_text(insert, 10, key->network);
    sqlite3_bind_int(insert, 11, key->fresh);
    sqlite3_bind_int64(insert, 12, (sqlite3_int64)key->created_s);
    sqlite3_bind_int64(insert, 13, (sqlite3_int64)key->expires_s);
    return sqlite3_step(insert) == SQLITE_DONE ? 0 : db_error(db, "writing a key", err);
}

int key_rows_delete(struct db *db, const char *id, cordon_error *err)
{
    auto_statement sqlite3_stmt *remove = db_statement(db, "DELETE FROM keys WHERE id = ?");
    if (!remove)
        return db_error(db, "removing a key", err);
    db_bind_text(remove, 1, id);
    if (sqlite3_step(remove) != SQLITE_DONE)
        return db_error(db, "removing a key", err);
    if (!sqlite3_changes(db->handle))
        return error_set(err, CORDON_ENOTFOUND, "keys", "there is no key '%s'", word_show(id).text);
    return 0;
}
