/* Owns the statements that write: accepting, finishing and erasing a run, and content that is kept once however many
 * runs point to it. Called by the writer within its transaction. */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/internal.h"

static int run_once(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int write_blob(struct writer *writer, const struct text *text)
{
    auto_statement sqlite3_stmt *insert =
        db_statement(&writer->db, "INSERT INTO blobs(sha256, size, created, content) VALUES (?, ?, ?, ?) "
                                  "ON CONFLICT(sha256) DO NOTHING");
    if (!insert)
        return SQLITE_ERROR;
    db_bind_text(insert, 1, text->sha256);
    sqlite3_bind_int64(insert, 2, (sqlite3_int64)text->length);
    sqlite3_bind_int64(insert, 3, time(NULL));
    sqlite3_bind_blob64(insert, 4, text->bytes, text->length, SQLITE_STATIC);
    int code = run_once(insert);
    if (code == SQLITE_OK && sqlite3_changes(writer->db.handle))
        writer->kept_bytes += text->length;
    return code;
}

static int write_text(struct writer *writer, const struct record *record, enum text_part part)
{
    const struct text *text = &record->texts[part];
    if (!text->bytes)
        return SQLITE_OK;
    int code = write_blob(writer, text);
    if (code != SQLITE_OK)
        return code;
    auto_statement sqlite3_stmt *insert = db_statement(
        &writer->db, "INSERT INTO texts(id, part, kept, blob) SELECT ?, ?, ?, number FROM blobs WHERE sha256 = ? "
                     "ON CONFLICT(id, part) DO UPDATE SET blob = excluded.blob");
    if (!insert)
        return SQLITE_ERROR;
    db_bind_text(insert, 1, record->id);
    db_bind_text(insert, 2, text_part_name(part));
    sqlite3_bind_int64(insert, 3, time(NULL));
    db_bind_text(insert, 4, text->sha256);
    return run_once(insert);
}

static int write_texts(struct writer *writer, const struct record *record)
{
    int code = SQLITE_OK;
    for (int i = 0; i < TEXT_COUNT && code == SQLITE_OK; i++)
        code = write_text(writer, record, i);
    return code;
}

static int accept_run(struct writer *writer, const struct record *record)
{
    auto_statement sqlite3_stmt *insert =
        db_statement(&writer->db, "INSERT INTO accepted(id, key, language, created_at) SELECT ?1, ?2, ?3, ?4 "
                                  "WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE id = ?1)");
    if (!insert)
        return SQLITE_ERROR;
    db_bind_text(insert, 1, record->id);
    db_bind_text(insert, 2, record->key);
    db_bind_text(insert, 3, record->language);
    db_bind_text(insert, 4, record->created_at);
    int code = run_once(insert);
    if (code == SQLITE_OK && !sqlite3_changes(writer->db.handle))
        return SQLITE_CONSTRAINT;
    return code == SQLITE_OK ? write_texts(writer, record) : code;
}

/* The first end that is told of a run counts; SQLITE_DONE when this is not it. */
static int append_entry(struct writer *writer, const struct record *record)
{
    struct head next = {.seq = writer->head.seq + 1};
    size_t length = strlen(record->entry);
    auto_statement sqlite3_stmt *insert =
        db_statement(&writer->db, "INSERT INTO ledger(seq, entry, prev, hash) SELECT ?1, ?2, ?3, ?4 "
                                  "WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE id = ?5)");
    if (!insert)
        return SQLITE_ERROR;
    head_chain(writer->head.hash, record->entry, length, next.hash);
    sqlite3_bind_int64(insert, 1, (sqlite3_int64)next.seq);
    sqlite3_bind_text64(insert, 2, record->entry, length, SQLITE_STATIC, SQLITE_UTF8);
    db_bind_text(insert, 3, writer->head.hash);
    db_bind_text(insert, 4, next.hash);
    db_bind_text(insert, 5, record->id);
    int code = run_once(insert);
    if (code != SQLITE_OK)
        return code;
    if (!sqlite3_changes(writer->db.handle))
        return SQLITE_DONE;
    sqlite3_reset(insert);
    writer->head = next;
    return SQLITE_OK;
}

static int drop_blob(struct writer *writer, sqlite3_int64 number)
{
    auto_statement sqlite3_stmt *remove =
        db_statement(&writer->db, "DELETE FROM blobs WHERE number = ?1 AND NOT EXISTS "
                                  "(SELECT 1 FROM texts WHERE blob = ?1) RETURNING size");
    if (!remove)
        return SQLITE_ERROR;
    sqlite3_bind_int64(remove, 1, number);
    int code = sqlite3_step(remove);
    if (code == SQLITE_ROW) {
        uint64_t size = (uint64_t)sqlite3_column_int64(remove, 0);
        writer->kept_bytes -= size < writer->kept_bytes ? size : writer->kept_bytes;
        code = sqlite3_step(remove);
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int rows_drop_texts(struct writer *writer, const char *id)
{
    sqlite3_int64 blobs[TEXT_COUNT];
    size_t count = 0;
    auto_statement sqlite3_stmt *remove = db_statement(&writer->db, "DELETE FROM texts WHERE id = ? RETURNING blob");
    if (!remove)
        return SQLITE_ERROR;
    db_bind_text(remove, 1, id);
    int code;
    while ((code = sqlite3_step(remove)) == SQLITE_ROW)
        if (count < ARRAY_LEN(blobs))
            blobs[count++] = sqlite3_column_int64(remove, 0);
    if (code != SQLITE_DONE)
        return code;
    sqlite3_reset(remove);
    code = SQLITE_OK;
    for (size_t i = 0; i < count && code == SQLITE_OK; i++)
        code = drop_blob(writer, blobs[i]);
    return code;
}

/* A request that was kept when the run was accepted, and is not the one that its entry tells of, would be neither. */
static int drop_other_request(struct writer *writer, const struct record *record)
{
    auto_statement sqlite3_stmt *find =
        db_statement(&writer->db, "SELECT 1 FROM texts JOIN blobs ON blobs.number = blob "
                                  "WHERE id = ? AND part = 'request' AND sha256 <> ?");
    if (!find)
        return SQLITE_ERROR;
    db_bind_text(find, 1, record->id);
    db_bind_text(find, 2, record->texts[TEXT_REQUEST].sha256);
    int code = sqlite3_step(find);
    sqlite3_reset(find);
    return code == SQLITE_ROW ? rows_drop_texts(writer, record->id) : code == SQLITE_DONE ? SQLITE_OK : code;
}

static int add_spent(struct writer *writer, const struct record *record)
{
    auto_statement sqlite3_stmt *add =
        db_statement(&writer->db, "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT(key, minute) DO UPDATE SET "
                                  "cpu_ms = cpu_ms + excluded.cpu_ms");
    if (!add)
        return SQLITE_ERROR;
    db_bind_text(add, 1, record->key);
    sqlite3_bind_int64(add, 2, time(NULL) / 60);
    sqlite3_bind_double(add, 3, record->cpu_ms);
    return run_once(add);
}

static int finish_run(struct writer *writer, const struct record *record)
{
    int code = append_entry(writer, record);
    if (code != SQLITE_OK)
        return code == SQLITE_DONE ? SQLITE_OK : code;
    auto_statement sqlite3_stmt *remove = db_statement(&writer->db, "DELETE FROM accepted WHERE id = ?");
    if (!remove)
        return SQLITE_ERROR;
    db_bind_text(remove, 1, record->id);
    code = run_once(remove);
    if (code == SQLITE_OK && sqlite3_changes(writer->db.handle))
        code = drop_other_request(writer, record);
    if (code == SQLITE_OK)
        code = add_spent(writer, record);
    return code == SQLITE_OK ? write_texts(writer, record) : code;
}

int rows_write(struct writer *writer, const struct job *job)
{
    switch (job->kind) {
    case JOB_ACCEPT:
        return accept_run(writer, &job->record);
    case JOB_FINISH:
        return finish_run(writer, &job->record);
    case JOB_ERASE:
        break;
    }
    return rows_drop_texts(writer, job->record.id);
}
