/* Owns two comparisons: the file's schema with that of a store made anew in memory, because a changed generated column
 * or a planted trigger makes every statement lie; and the rows of the other tables with the ledger's. Called by
 * verify.c. */
#include "store/verify_tables.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/key_rows.h"
#include "store/schema.h"

#define SCHEMA                                                                                                         \
    "SELECT type || ' ' || name, coalesce(sql, ''), tbl_name FROM sqlite_schema ORDER BY type, name, tbl_name"

static int open_model(struct db *model)
{
    *model = (struct db){.path = NULL};
    int code = sqlite3_open(":memory:", &model->handle);
    return code == SQLITE_OK && schema_upgrade(model, NULL) < 0 ? SQLITE_ERROR : code;
}

static bool same_row(sqlite3_stmt *a, sqlite3_stmt *b)
{
    for (int column = 0; column < 3; column++)
        if (strcmp(db_text(a, column), db_text(b, column)) != 0)
            return false;
    return true;
}

/* Both are sorted, so the first difference is in the one whose name comes first. */
static void tell_difference(sqlite3_stmt *have, bool has, sqlite3_stmt *want, bool wants, char wrong[VERIFY_TEXT_MAX])
{
    int order = !has ? 1 : !wants ? -1 : strcmp(db_text(have, 0), db_text(want, 0));
    snprintf(wrong, VERIFY_TEXT_MAX, "the schema was changed: %.150s %s", db_text(order < 0 ? have : want, 0),
             order < 0   ? "is none of the store's"
             : order > 0 ? "is missing"
                         : "is not defined as the store defines it");
}

static int compare(sqlite3_stmt *have, sqlite3_stmt *want, char wrong[VERIFY_TEXT_MAX])
{
    for (;;) {
        int has = sqlite3_step(have), wants = sqlite3_step(want);
        if ((has != SQLITE_ROW && has != SQLITE_DONE) || (wants != SQLITE_ROW && wants != SQLITE_DONE))
            return has == SQLITE_ROW || has == SQLITE_DONE ? wants : has;
        if (has == SQLITE_DONE && wants == SQLITE_DONE)
            return SQLITE_OK;
        if (has != wants || !same_row(have, want)) {
            tell_difference(have, has == SQLITE_ROW, want, wants == SQLITE_ROW, wrong);
            return SQLITE_OK;
        }
    }
}

int verify_schema(struct db *db, char wrong[VERIFY_TEXT_MAX])
{
    struct db model;
    *wrong = '\0';
    int code = open_model(&model);
    if (code == SQLITE_OK) {
        auto_statement sqlite3_stmt *have = db_statement(db, SCHEMA), *want = db_statement(&model, SCHEMA);
        code = have && want ? compare(have, want, wrong) : SQLITE_ERROR;
    }
    db_close(&model);
    return code;
}

/* Each finds a row that must not be there, and shows what it is about. */
static const struct {
    const char *sql, *wrong;
} strays[] = {
    {"SELECT id FROM texts WHERE id NOT IN (SELECT id FROM ledger) AND id NOT IN (SELECT id FROM accepted) LIMIT 1",
     "a text is kept for run %s, which is not in the ledger"},
    {"SELECT part FROM texts WHERE part NOT IN ('request', 'stdout', 'stderr', 'result') LIMIT 1",
     "a text is kept as '%s', which is no part of a run"},
    {"SELECT substr(sha256, 1, 16) FROM blobs WHERE number NOT IN (SELECT blob FROM texts) LIMIT 1",
     "content %s… is kept for no run"},
    {"SELECT id FROM accepted WHERE id IN (SELECT id FROM ledger) LIMIT 1",
     "run %s is in the ledger, and said to go on"},
    {"SELECT count(*) FROM alive HAVING count(*) <> 1 OR max(one) <> 1", "the table `alive` has %s rows, not 1"},
    {"SELECT key FROM (SELECT key, sum(cpu_ms) AS used FROM spent GROUP BY key) AS s LEFT JOIN (SELECT key AS owner, "
     "sum(entry ->> '$.cpu_ms') AS told FROM ledger GROUP BY key) AS l ON owner = key "
     "WHERE abs(used - coalesce(told, 0)) > 1 + used * 1e-9 LIMIT 1",
     "the processor time of key '%s' is not what its runs used"},
    {"SELECT owner FROM (SELECT key AS owner, sum(entry ->> '$.cpu_ms') AS told FROM ledger GROUP BY key) AS l WHERE "
     "told > 1 AND owner NOT IN (SELECT key FROM spent) LIMIT 1",
     "the processor time of key '%s' is missing"},
};

static int find_stray(struct db *db, size_t row, char wrong[VERIFY_TEXT_MAX])
{
    auto_statement sqlite3_stmt *find = db_statement(db, strays[row].sql);
    int code = find ? sqlite3_step(find) : SQLITE_ERROR;
    if (code == SQLITE_ROW) {
        const char *place = strstr(strays[row].wrong, "%s");
        snprintf(wrong, VERIFY_TEXT_MAX, "%.*s%.64s%s", (int)(place - strays[row].wrong), strays[row].wrong,
                 db_text(find, 0), place + 2);
    }
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int verify_rest(struct db *db, char wrong[VERIFY_TEXT_MAX])
{
    struct key_row *rows = NULL;
    size_t count = 0;
    cordon_error err;
    int code = SQLITE_OK;
    *wrong = '\0';
    for (size_t i = 0; i < ARRAY_LEN(strays) && code == SQLITE_OK && !*wrong; i++)
        code = find_stray(db, i, wrong);
    if (code == SQLITE_OK && !*wrong && key_rows_load(db, &rows, &count, &err) < 0)
        snprintf(wrong, VERIFY_TEXT_MAX, "an API key cannot be read: %.200s", err.text);
    free(rows);
    return code;
}
