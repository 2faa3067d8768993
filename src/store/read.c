/* Owns the questions about runs: one run, its request, lists, what a key has used. Reads over a connection of its own,
 * so that it never waits for the writer; what is not committed yet is found in the queue. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "output/json_text.h"
#include "plan/word.h"
#include "store/internal.h"

#define LIST_DEFAULT 50
#define LIST_MAX     1000

static void cleanup_json(json_t **json)
{
    json_decref(*json);
}
#define auto_json __attribute__((cleanup(cleanup_json)))

static void unlock(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}
#define hold_lock(name, mutex)                                                                                         \
    __attribute__((cleanup(unlock))) pthread_mutex_t *name = (mutex);                                                  \
    pthread_mutex_lock(name)

static int no_such_run(const char *id, cordon_error *err)
{
    return error_set(err, CORDON_ENOTFOUND, "store", "there is no run '%s'", word_show(id).text);
}

static char *copy_bytes(const void *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

struct copying {
    struct record *to;
    bool failed;
};

static void copy_record(void *context, const struct record *from)
{
    struct copying *copying = context;
    struct record *to = copying->to;
    *to = (struct record){.id = strdup(from->id), .key = strdup(from->key), .entry = strdup(from->entry)};
    copying->failed = !to->id || !to->key || !to->entry;
    for (int i = 0; i < TEXT_COUNT; i++)
        if (from->texts[i].bytes) {
            to->texts[i].bytes = copy_bytes(from->texts[i].bytes, from->texts[i].length);
            to->texts[i].length = from->texts[i].length;
            copying->failed |= !to->texts[i].bytes;
        }
}

static int load_texts(struct db *db, const char *id, struct record *record)
{
    auto_statement sqlite3_stmt *find =
        db_statement(db, "SELECT part, content FROM texts JOIN blobs ON blobs.number = texts.blob WHERE texts.id = ?");
    if (!find)
        return SQLITE_ERROR;
    db_bind_text(find, 1, id);
    int code;
    while ((code = sqlite3_step(find)) == SQLITE_ROW)
        for (int i = 0; i < TEXT_COUNT; i++)
            if (!strcmp(db_text(find, 0), text_part_name(i)) && !record->texts[i].bytes) {
                size_t length = (size_t)sqlite3_column_bytes(find, 1);
                record->texts[i].bytes = copy_bytes(sqlite3_column_blob(find, 1), length);
                record->texts[i].length = length;
                if (!record->texts[i].bytes)
                    return SQLITE_NOMEM;
            }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* SQLITE_ROW when it is there. */
static int load_finished(struct db *db, const char *id, struct record *record)
{
    auto_statement sqlite3_stmt *find = db_statement(db, "SELECT key, entry FROM ledger WHERE id = ?");
    if (!find)
        return SQLITE_ERROR;
    db_bind_text(find, 1, id);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) {
        record->key = strdup(db_text(find, 0));
        record->entry = strdup(db_text(find, 1));
    }
    return code;
}

static int load_accepted(struct db *db, const char *id, struct record *record)
{
    auto_statement sqlite3_stmt *find = db_statement(db, "SELECT key, language, created_at FROM accepted WHERE id = ?");
    if (!find)
        return SQLITE_ERROR;
    db_bind_text(find, 1, id);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) {
        record->key = strdup(db_text(find, 0));
        record->language = strdup(db_text(find, 1));
        snprintf(record->created_at, sizeof record->created_at, "%s", db_text(find, 2));
    }
    return code;
}

/* One transaction, so that a run which ends meanwhile is seen before or after, and with its texts or without. */
static int load_from_file(struct store *store, const char *id, struct record *record, cordon_error *err)
{
    struct db *db = &store->reader;
    hold_lock(held, &store->read_lock);
    int code = db_run(db, "BEGIN");
    code = code == SQLITE_OK ? load_finished(db, id, record) : code;
    if (code == SQLITE_DONE)
        code = load_accepted(db, id, record);
    bool found = code == SQLITE_ROW;
    if (found)
        code = load_texts(db, id, record);
    int failed = code == SQLITE_OK || code == SQLITE_DONE ? 0 : db_error(db, "reading a run", err);
    db_run(db, "ROLLBACK");
    if (failed)
        return failed;
    if (!found)
        return no_such_run(id, err);
    record->id = strdup(id);
    return record->id && record->key ? 0 : error_nomem(err);
}

int read_record(struct store *store, const char *id, const char *key, struct record *record, cordon_error *err)
{
    struct copying copying = {.to = record};
    int code = 0;
    if (!store->read_only && writer_find(store, id, copy_record, &copying))
        code = copying.failed ? error_nomem(err) : 0;
    else
        code = load_from_file(store, id, record, err);
    /* Another key's run is none at all. */
    if (code == 0 && key && (!record->key || strcmp(record->key, key) != 0))
        code = no_such_run(id, err);
    return code;
}

static void add_size(void *context, const struct record *record)
{
    *(uint64_t *)context = record_bytes(record);
}

int store_size(struct store *store, const char *id, uint64_t *bytes, cordon_error *err)
{
    *bytes = 0;
    if (!store->read_only && writer_find(store, id, add_size, bytes))
        return 0;
    hold_lock(held, &store->read_lock);
    auto_statement sqlite3_stmt *sum = db_statement(
        &store->reader,
        "SELECT coalesce(sum(size), 0) FROM texts JOIN blobs ON blobs.number = texts.blob WHERE texts.id = ?");
    if (!sum)
        return db_error(&store->reader, "reading a run's size", err);
    db_bind_text(sum, 1, id);
    if (sqlite3_step(sum) != SQLITE_ROW)
        return db_error(&store->reader, "reading a run's size", err);
    *bytes = (uint64_t)sqlite3_column_int64(sum, 0);
    return 0;
}

int store_result(struct store *store, const char *id, const char *key, char **json, cordon_error *err)
{
    auto_record struct record record = {0};
    int code = read_record(store, id, key, &record, err);
    if (code < 0)
        return code;
    return record.entry ? record_result(record.entry, record.texts, json, err) : record_running(&record, json, err);
}

int store_request(struct store *store, const char *id, const char *key, char **json, cordon_error *err)
{
    auto_record struct record record = {0};
    int code = read_record(store, id, key, &record, err);
    if (code < 0)
        return code;
    if (!record.texts[TEXT_REQUEST].bytes) {
        error_set(err, CORDON_ESTATE, "store", "the request of run %s is not kept", id);
        return error_hint(err, "it was erased, grew too old, or the store keeps hashes only");
    }
    *json = take_ptr(&record.texts[TEXT_REQUEST].bytes);
    return 0;
}

static int parse_cursor(const char *cursor, sqlite3_int64 *before, cordon_error *err)
{
    uint64_t seq;
    int end = 0;
    *before = INT64_MAX;
    if (!cursor)
        return 0;
    if (strlen(cursor) > 18 || sscanf(cursor, "r%" SCNx64 "%n", &seq, &end) != 1 || cursor[end] || seq > INT64_MAX)
        return error_field(err, "/cursor", "'%s' is no cursor; expected one from an earlier answer",
                           word_show(cursor).text);
    *before = (sqlite3_int64)seq;
    return 0;
}

/* Only what is asked for is in the statement, so that SQLite can choose an index for it. */
static int prepare_list(struct db *db, const struct store_query *query, sqlite3_int64 before, unsigned limit,
                        sqlite3_stmt **statement)
{
    const struct {
        const char *condition, *value;
    } filters[] = {{"key =", query->key},
                   {"language =", query->language},
                   {"status =", query->status},
                   {"entry ->> '$.created_at' >=", query->since},
                   {"entry ->> '$.created_at' <", query->until}};
    auto_buf struct buf sql = {0};
    buf_puts(&sql, "SELECT seq, entry, EXISTS (SELECT 1 FROM texts WHERE texts.id = ledger.id AND part = 'result') "
                   "FROM ledger WHERE seq < ?1");
    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        if (filters[i].value)
            buf_printf(&sql, " AND %s ?%zu", filters[i].condition, i + 3);
    buf_puts(&sql, " ORDER BY seq DESC LIMIT ?2");
    if (sql.failed)
        return SQLITE_NOMEM;
    int code = sqlite3_prepare_v2(db->handle, sql.data, -1, statement, NULL);
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_int64(*statement, 1, before);
    sqlite3_bind_int64(*statement, 2, limit + 1);
    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        if (filters[i].value)
            sqlite3_bind_text(*statement, (int)i + 3, filters[i].value, -1, SQLITE_TRANSIENT);
    return SQLITE_OK;
}

/* One row more than asked for tells whether there is another page. */
static int collect_items(sqlite3_stmt *statement, unsigned limit, json_t *items, json_t **cursor)
{
    int code;
    sqlite3_int64 last = 0;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (json_array_size(items) == limit) {
            *cursor = json_sprintf("r%llx", (unsigned long long)last);
            return *cursor ? SQLITE_DONE : SQLITE_NOMEM;
        }
        last = sqlite3_column_int64(statement, 0);
        if (json_array_append_new(items, record_summary(db_text(statement, 1), sqlite3_column_int(statement, 2))) < 0)
            return SQLITE_CORRUPT;
    }
    return code;
}

static int list_items(struct store *store, const struct store_query *query, sqlite3_int64 before, unsigned limit,
                      json_t *items, json_t **cursor, cordon_error *err)
{
    hold_lock(held, &store->read_lock);
    sqlite3_stmt *statement = NULL;
    int code = prepare_list(&store->reader, query, before, limit, &statement);
    if (code == SQLITE_OK)
        code = collect_items(statement, limit, items, cursor);
    int failed = 0;
    if (code == SQLITE_CORRUPT && sqlite3_errcode(store->reader.handle) == SQLITE_ROW) {
        failed = error_set(err, CORDON_ESYSTEM, "store", "a row of the ledger in %s is damaged", store->path);
        error_hint(err, "`cordon verify-ledger` tells which");
    } else if (code != SQLITE_DONE)
        failed = db_error(&store->reader, "listing runs", err);
    sqlite3_finalize(statement);
    return failed;
}

int store_list(struct store *store, const struct store_query *query, char **json, cordon_error *err)
{
    unsigned limit = query->limit ? query->limit : LIST_DEFAULT;
    sqlite3_int64 before;
    if (limit > LIST_MAX)
        return error_field(err, "/limit", "limit %u is too large; expected at most %d", limit, LIST_MAX);
    int code = parse_cursor(query->cursor, &before, err);
    if (code < 0)
        return code;
    if (!store->read_only)
        writer_catch_up(store);
    auto_json json_t *items = json_array();
    json_t *cursor = NULL;
    code = list_items(store, query, before, limit, items, &cursor, err);
    auto_json json_t *answer = json_pack("{s:O, s:o}", "items", items, "next_cursor", cursor ? cursor : json_null());
    if (code < 0)
        return code;
    *json = answer ? json_text(answer, NULL) : NULL;
    return *json ? 0 : error_nomem(err);
}

int store_spent(struct store *store, uint64_t since_s, void (*tell)(void *context, const char *key, double cpu_ms),
                void *context, cordon_error *err)
{
    hold_lock(held, &store->read_lock);
    auto_statement sqlite3_stmt *sums =
        db_statement(&store->reader, "SELECT key, sum(cpu_ms) FROM spent WHERE minute >= ? GROUP BY key");
    if (!sums)
        return db_error(&store->reader, "adding up processor time", err);
    sqlite3_bind_int64(sums, 1, (sqlite3_int64)(since_s / 60));
    int code;
    while ((code = sqlite3_step(sums)) == SQLITE_ROW)
        tell(context, db_text(sums, 0), sqlite3_column_double(sums, 1));
    return code == SQLITE_DONE ? 0 : db_error(&store->reader, "adding up processor time", err);
}

static void free_list(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

/* With room for the NULL at the end. Doubles at powers of two, so no capacity needs keeping. */
static int append_id(char ***list, size_t *count, const char *id)
{
    size_t needed = *count + 2;
    if ((needed & (needed - 1)) == 0) {
        char **more = realloc(*list, needed * 2 * sizeof *more);
        if (!more)
            return -1;
        *list = more;
    }
    char *copy = strdup(id);
    if (!copy)
        return -1;
    (*list)[(*count)++] = copy;
    return 0;
}

int store_unfinished(struct store *store, char ***ids, cordon_error *err)
{
    hold_lock(held, &store->read_lock);
    auto_statement sqlite3_stmt *find = db_statement(&store->reader, "SELECT id FROM accepted ORDER BY number");
    char **list = calloc(1, sizeof *list);
    size_t count = 0;
    int code = find && list ? SQLITE_ROW : SQLITE_ERROR;
    bool failed = !list;
    while (code == SQLITE_ROW && !failed && (code = sqlite3_step(find)) == SQLITE_ROW)
        failed = append_id(&list, &count, db_text(find, 0)) < 0;
    if (!failed && code == SQLITE_DONE) {
        list[count] = NULL;
        *ids = list;
        return 0;
    }
    free_list(list, count);
    return failed ? error_nomem(err) : db_error(&store->reader, "listing unfinished runs", err);
}
