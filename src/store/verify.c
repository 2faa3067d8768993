/* Owns the check of a whole ledger: every row follows the one before, none is missing, nothing was changed, the head is
 * among them, and every kept text is what its row says. Reads one snapshot, beside a daemon that writes on. Told to
 * `cordon verify-ledger`. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/sha256.h"
#include "store/internal.h"
#include "store/place.h"
#include "store/verify_tables.h"

struct check {
    struct db db;
    struct store_verdict *verdict;
    const char *expected; /* NULL: none, or found already */
    struct head head;     /* as the file has it */
    bool has_head;
    bool head_seen;
    char last[RECORD_HEX];
};

static __attribute__((format(printf, 3, 4))) void found(struct check *check, uint64_t row, const char *format, ...)
{
    struct store_verdict *verdict = check->verdict;
    va_list args;
    if (!verdict->good)
        return;
    verdict->good = false;
    verdict->bad_row = row;
    va_start(args, format);
    vsnprintf(verdict->text, sizeof verdict->text, format, args);
    va_end(args);
}

/* The text of a top-level member. In canonical JSON a quote within a text has a backslash before it, so that the name
 * between quotes and its colon can stand nowhere but at a member. */
static void entry_member(const char *entry, const char *name, char *text, size_t size)
{
    char pattern[40];
    snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
    const char *at = strstr(entry, pattern);
    *text = '\0';
    if (!at)
        return;
    at += strlen(pattern);
    snprintf(text, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* "row 17 (run 3f…)" of an entry that need not be what it was. */
static const char *row_name(uint64_t row, const char *entry, char *text, size_t size)
{
    char id[41];
    entry_member(entry, "id", id, sizeof id);
    id[strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")] = '\0';
    snprintf(text, size, "row %" PRIu64 "%s%s%s", row, *id ? " (run " : "", id, *id ? ")" : "");
    return text;
}

static void check_row(struct check *check, sqlite3_stmt *row)
{
    uint64_t want = check->verdict->rows + 1, seq = (uint64_t)sqlite3_column_int64(row, 0);
    const char *entry = db_text(row, 1), *prev = db_text(row, 2), *hash = db_text(row, 3);
    char made[RECORD_HEX], name[96];
    row_name(seq, entry, name, sizeof name);
    head_chain(prev, entry, (size_t)sqlite3_column_bytes(row, 1), made);
    if (seq != want)
        found(check, want, "row %" PRIu64 " is missing: the next is %s", want, name);
    else if (strcmp(made, hash) != 0)
        found(check, seq, "%s: its hash does not match its content", name);
    else if (strcmp(prev, check->last) != 0)
        found(check, seq, "%s: it does not follow row %" PRIu64 ": a row was changed, removed, inserted or moved", name,
              seq - 1);
    if (check->has_head && seq == check->head.seq) {
        check->head_seen = true;
        if (strcmp(hash, check->head.hash) != 0)
            found(check, seq, "%s: it is not the row that " PLACE_HEAD " names", name);
    }
    if (check->expected && !strcmp(hash, check->expected))
        check->expected = NULL;
    memcpy(check->last, made, sizeof made);
    check->verdict->rows++;
}

/* Stops at the first wrong row: what comes after hangs on it. */
static int check_rows(struct check *check)
{
    auto_statement sqlite3_stmt *rows =
        db_statement(&check->db, "SELECT seq, entry, prev, hash FROM ledger NOT INDEXED ORDER BY seq");
    int code = rows ? SQLITE_ROW : sqlite3_errcode(check->db.handle);
    while (check->verdict->good && code == SQLITE_ROW && (code = sqlite3_step(rows)) == SQLITE_ROW)
        check_row(check, rows);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static void check_end(struct check *check)
{
    uint64_t rows = check->verdict->rows;
    if (check->has_head && check->head.seq && !check->head_seen)
        found(check, rows + 1,
              "the ledger was cut: it ends with row %" PRIu64 ", but " PLACE_HEAD " names row %" PRIu64, rows,
              check->head.seq);
    if (!check->has_head && rows)
        found(check, rows, PLACE_HEAD " is missing, so that nothing tells whether rows were cut off after row %" PRIu64,
              rows);
    if (check->expected && strcmp(check->expected, HEAD_NONE) != 0)
        found(check, rows + 1, "no row has the expected hash %.16s…: rows were cut off or written anew",
              check->expected);
}

static int check_contents(struct check *check)
{
    auto_statement sqlite3_stmt *blobs = db_statement(
        &check->db, "SELECT b.number, b.sha256, b.content, b.size, (SELECT t.id || ' ' || t.part FROM texts t "
                    "WHERE t.blob = b.number LIMIT 1) FROM blobs b");
    int code = blobs ? SQLITE_ROW : sqlite3_errcode(check->db.handle);
    while (check->verdict->good && code == SQLITE_ROW && (code = sqlite3_step(blobs)) == SQLITE_ROW) {
        uint8_t digest[SHA256_BYTES];
        char hex[RECORD_HEX];
        int length = sqlite3_column_bytes(blobs, 2);
        sha256_of(sqlite3_column_blob(blobs, 2), (size_t)length, digest);
        sha256_text(digest, hex);
        if (strcmp(hex, db_text(blobs, 1)) != 0 || length != sqlite3_column_int64(blobs, 3))
            found(check, 0, "a kept text (%s) does not match its hash %.16s…", db_text(blobs, 4), db_text(blobs, 1));
    }
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static void check_reference(struct check *check, sqlite3_stmt *row)
{
    const char *part = db_text(row, 2), *entry = db_text(row, 1), *sha256 = db_text(row, 3);
    uint64_t seq = (uint64_t)sqlite3_column_int64(row, 0);
    char expected[RECORD_HEX] = "", name[96];
    bool known = false;
    for (int i = 0; i < TEXT_COUNT; i++)
        if (!strcmp(part, text_part_name(i))) {
            known = true;
            entry_member(entry, text_part_hash(i), expected, sizeof expected);
        }
    row_name(seq, entry, name, sizeof name);
    if (!*sha256)
        found(check, seq, "%s: its kept %s is gone", name, part);
    else if (!known || strcmp(expected, sha256) != 0)
        found(check, seq, "%s: its kept %s is not what the row tells of", name, part);
}

static int check_references(struct check *check)
{
    auto_statement sqlite3_stmt *texts =
        db_statement(&check->db, "SELECT l.seq, l.entry, t.part, b.sha256 FROM texts t CROSS JOIN ledger l ON l.id = "
                                 "t.id LEFT JOIN blobs b ON b.number = t.blob");
    int code = texts ? SQLITE_ROW : sqlite3_errcode(check->db.handle);
    while (check->verdict->good && code == SQLITE_ROW && (code = sqlite3_step(texts)) == SQLITE_ROW)
        check_reference(check, texts);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* What finds a run by its id or key is no part of the chain, but would hide one if it were changed. */
static int check_structure(struct check *check)
{
    static const char *const statements[] = {"PRAGMA integrity_check('ledger')", "PRAGMA integrity_check('texts')",
                                             "PRAGMA integrity_check('blobs')",  "PRAGMA integrity_check('accepted')",
                                             "PRAGMA integrity_check('spent')",  "PRAGMA integrity_check('keys')"};
    int code = SQLITE_DONE;
    for (size_t i = 0; i < ARRAY_LEN(statements) && check->verdict->good && code == SQLITE_DONE; i++) {
        auto_statement sqlite3_stmt *statement = db_statement(&check->db, statements[i]);
        code = statement ? sqlite3_step(statement) : sqlite3_errcode(check->db.handle);
        if (code == SQLITE_ROW && strcmp(db_text(statement, 0), "ok") != 0)
            found(check, 0, "the file is damaged: %s", db_text(statement, 0));
        if (code == SQLITE_ROW)
            code = SQLITE_DONE;
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int check_schema(struct check *check)
{
    char wrong[VERIFY_TEXT_MAX];
    int code = verify_schema(&check->db, wrong);
    if (*wrong)
        found(check, 0, "%s", wrong);
    return code;
}

static int check_rest(struct check *check)
{
    char wrong[VERIFY_TEXT_MAX];
    int code = verify_rest(&check->db, wrong);
    if (*wrong)
        found(check, 0, "%s", wrong);
    return code;
}

/* The schema first: everything else is asked through it. */
static int check_all(struct check *check, cordon_error *err)
{
    int code = db_run(&check->db, "BEGIN");
    if (code == SQLITE_OK)
        code = check_schema(check);
    if (code == SQLITE_OK && check->verdict->good)
        code = check_rows(check);
    if (code == SQLITE_OK && check->verdict->good)
        check_end(check);
    static int (*const further[])(struct check *) = {check_contents, check_references, check_structure, check_rest};
    for (size_t i = 0; i < ARRAY_LEN(further) && code == SQLITE_OK && check->verdict->good; i++)
        code = further[i](check);
    if (db_is_damage(code) || code == SQLITE_ERROR)
        found(check, check->verdict->rows + 1, "the file is damaged after row %" PRIu64 ": %s", check->verdict->rows,
              sqlite3_errmsg(check->db.handle));
    else if (code != SQLITE_OK)
        return db_error(&check->db, "reading the ledger", err);
    snprintf(check->verdict->head, sizeof check->verdict->head, "%s", check->last);
    return 0;
}

/* The head first: it only ever follows the table, so one that is read before is never ahead of it. */
static int open_check(struct check *check, const char *data_dir, cordon_error *err)
{
    auto_free char *path = NULL;
    auto_close int dir = -1;
    int code = place_open(data_dir, false, &path, &dir, err);
    if (code < 0)
        return code;
    cordon_error head_err = {0};
    code = head_read(dir, &check->head, &head_err);
    check->has_head = code == 0;
    if (code < 0 && code != CORDON_ENOTFOUND)
        found(check, 0, "%s", head_err.text);
    return db_open(&check->db, path, DB_READ, err);
}

int store_verify(const char *data_dir, const char *expected_head, struct store_verdict *verdict, cordon_error *err)
{
    *verdict = (struct store_verdict){.good = true};
    struct check check = {.verdict = verdict, .expected = expected_head, .last = HEAD_NONE};
    int code = open_check(&check, data_dir, err);
    if (code < 0 && check.db.handle && db_is_damage(sqlite3_errcode(check.db.handle))) {
        found(&check, 1, "the file is damaged: %s", sqlite3_errmsg(check.db.handle));
        code = 0;
    } else if (code == 0 && verdict->good)
        code = check_all(&check, err);
    db_close(&check.db);
    return code;
}
