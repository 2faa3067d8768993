/* Owns how long texts are kept: by age and by how much they are together, oldest first, some at a time and only when
 * nothing waits to be written. The ledger's rows stay. Called by the writer. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/internal.h"

#define STEP_RUNS  16
#define STEP_PAGES "PRAGMA incremental_vacuum(512)"
#define SWEEP_US   30000000

bool retain_is_due(const struct store *store)
{
    const struct writer *writer = &store->writer;
    if (store->max_bytes && writer->kept_bytes > store->max_bytes && writer->kept_bytes != writer->swept_bytes)
        return true;
    return store->max_age_s && clock_us() >= writer->next_sweep_us;
}

/* A run that goes on keeps its request. */
static int oldest(struct writer *writer, char **id, sqlite3_int64 *kept)
{
    auto_statement sqlite3_stmt *find =
        db_statement(&writer->db, "SELECT id, kept FROM texts WHERE NOT EXISTS "
                                  "(SELECT 1 FROM accepted WHERE accepted.id = texts.id) ORDER BY number LIMIT 1");
    int code = find ? sqlite3_step(find) : SQLITE_ERROR;
    if (code != SQLITE_ROW)
        return code;
    *id = strdup(db_text(find, 0));
    *kept = sqlite3_column_int64(find, 1);
    return *id ? SQLITE_ROW : SQLITE_NOMEM;
}

/* SQLITE_OK when one was removed, SQLITE_DONE when there is none to remove. */
static int remove_one(struct store *store)
{
    struct writer *writer = &store->writer;
    auto_free char *id = NULL;
    sqlite3_int64 kept;
    int code = oldest(writer, &id, &kept);
    if (code != SQLITE_ROW)
        return code;
    bool old = store->max_age_s && kept + (sqlite3_int64)store->max_age_s <= (sqlite3_int64)time(NULL);
    bool much = store->max_bytes && writer->kept_bytes > store->max_bytes;
    return old || much ? rows_drop_texts(writer, id) : SQLITE_DONE;
}

int retain_step(struct store *store)
{
    struct writer *writer = &store->writer;
    int code = db_run(&writer->db, "BEGIN IMMEDIATE");
    for (int i = 0; i < STEP_RUNS && code == SQLITE_OK; i++)
        code = remove_one(store);
    bool more = code == SQLITE_OK;
    if (code != SQLITE_OK && code != SQLITE_DONE)
        return -code;
    code = db_run(&writer->db, "COMMIT");
    if (code != SQLITE_OK || (code = db_run(&writer->db, STEP_PAGES)) != SQLITE_OK)
        return -code;
    if (!more) {
        writer->next_sweep_us = clock_us() + SWEEP_US;
        writer->swept_bytes = writer->kept_bytes;
    }
    return more;
}
