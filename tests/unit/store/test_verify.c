/* Checking a ledger: whatever somebody changes in the file is found, and told where it is. */
#include <fcntl.h>
#include <unistd.h>

#include "data_place.h"

static const struct store_options full = {.keep = STORE_KEEP_FULL};

static struct store_verdict verify(struct place *place, const char *head)
{
    struct store_verdict verdict;
    cordon_error err;
    assert_ok(store_verify(place->path, head, &verdict, &err), &err);
    return verdict;
}

static void fill(struct place *place)
{
    place_begin(place, full);
    finish_many(place, 20);
    place_end(place);
}

static void test_verify__good(void **state)
{
    struct place *place = *state;
    place_begin(place, full);
    struct store_verdict verdict = verify(place, NULL);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 0);
    place_end(place);
    fill(place);
    verdict = verify(place, NULL);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 20);
    assert_int_equal(strlen(verdict.head), 64);
    /* A head that was kept earlier holds while the ledger grows. */
    assert_true(verify(place, verdict.head).good);
    place_begin(place, full);
    finish(place, "later", "", "more");
    place_end(place);
    assert_true(verify(place, verdict.head).good);
}

static void test_verify__finds_and_locates(void **state)
{
    static const struct {
        const char *change;
        uint64_t row;
        const char *text;
    } cases[] = {
        {"UPDATE ledger SET entry = replace(entry, '\"exit_code\":0', '\"exit_code\":1') WHERE seq = 7", 7,
         "row 7 (run r7): its hash does not match its content"},
        {"UPDATE ledger SET entry = entry || ' ' WHERE seq = 20", 20, "row 20 (run r20): its hash does not"},
        {"UPDATE ledger SET entry = '{}' WHERE seq = 2", 2, "row 2: its hash does not match"},
        {"UPDATE ledger SET hash = iif(hash LIKE '0%', '1', '0') || substr(hash, 2) WHERE seq = 3", 3,
         "row 3 (run r3): its hash does not"},
        {"UPDATE ledger SET prev = iif(prev LIKE '0%', '1', '0') || substr(prev, 2) WHERE seq = 5", 5,
         "row 5 (run r5): its hash does not"},
        {"DELETE FROM ledger WHERE seq = 11", 11, "row 11 is missing: the next is row 12 (run r12)"},
        {"DELETE FROM ledger WHERE seq = 1", 1, "row 1 is missing: the next is row 2 (run r2)"},
        {"DELETE FROM ledger WHERE seq = 4; UPDATE ledger SET seq = -seq WHERE seq > 4;"
         "UPDATE ledger SET seq = -seq - 1 WHERE seq < 0",
         4, "row 4 (run r5): it does not follow row 3"},
        {"UPDATE ledger SET seq = 100 WHERE seq = 8; UPDATE ledger SET seq = 8 WHERE seq = 9;"
         "UPDATE ledger SET seq = 9 WHERE seq = 100",
         8, "row 8 (run r9): it does not follow row 7"},
        {"INSERT INTO ledger(seq, entry, prev, hash) SELECT 21, replace(entry, '\"r20\"', '\"new\"'), hash, hash "
         "FROM ledger WHERE seq = 20",
         21, "row 21 (run new): its hash does not match"},
        {"DELETE FROM ledger WHERE seq > 15", 16,
         "the ledger was cut: it ends with row 15, but ledger.head names row 20"},
        {"DELETE FROM ledger", 1, "the ledger was cut: it ends with row 0"},
        {"UPDATE blobs SET content = CAST('outpuT 6' AS BLOB) WHERE content = CAST('output 6' AS BLOB)", 0,
         "a kept text (r6 stdout) does not match its hash"},
        {"UPDATE texts SET blob = (SELECT number FROM blobs WHERE content = CAST('output 9' AS BLOB)) "
         "WHERE id = 'r13' AND part = 'stdout'",
         13, "row 13 (run r13): its kept stdout is not what the row tells of"},
        {"DELETE FROM blobs WHERE content = CAST('output 2' AS BLOB)", 2, "row 2 (run r2): its kept stdout is gone"},
    };
    struct place *place = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fill(place);
        file_change(place, cases[i].change);
        struct store_verdict verdict = verify(place, NULL);
        assert_false(verdict.good);
        if (!strstr(verdict.text, cases[i].text) || verdict.bad_row != cases[i].row)
            fail_msg("%s: row %lu: %s", cases[i].change, (unsigned long)verdict.bad_row, verdict.text);
        nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

/* One that is no JSON any more cannot be written through the indexes, but beneath them: the next test. */
static void test_verify__finds_every_changed_byte(void **state)
{
    struct place *place = *state;
    int found = 0;
    fill(place);
    sqlite3 *file = file_open(place);
    sqlite3_exec(file, "PRAGMA synchronous=OFF; CREATE TEMP TABLE saved AS SELECT entry FROM ledger WHERE seq = 10",
                 NULL, NULL, NULL);
    long length = file_number(place, "SELECT length(entry) FROM ledger WHERE seq = 10");
    for (long at = 1; at <= length; at++) {
        auto_free char *change =
            text_of("UPDATE ledger SET entry = substr(entry, 1, %ld) || "
                    "char(unicode(substr(entry, %ld, 1)) + 1) || substr(entry, %ld) WHERE seq = 10",
                    at - 1, at, at + 1);
        if (sqlite3_exec(file, change, NULL, NULL, NULL) != SQLITE_OK)
            continue;
        struct store_verdict verdict = verify(place, NULL);
        assert_false(verdict.good);
        assert_int_equal(verdict.bad_row, 10);
        assert_int_equal(
            sqlite3_exec(file, "UPDATE ledger SET entry = (SELECT entry FROM saved) WHERE seq = 10", NULL, NULL, NULL),
            SQLITE_OK);
        found++;
    }
    sqlite3_close(file);
    assert_true(found > 500);
    assert_true(verify(place, NULL).good);
}

/* Straight in the file, beneath SQLite: each place where the text stands, a byte changed. */
static void test_verify__finds_bytes_changed_in_the_file(void **state)
{
    struct place *place = *state;
    fill(place);
    sqlite3 *file = file_open(place);
    sqlite3_exec(file, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    sqlite3_close(file);
    auto_free char *path = text_of("%s/cordon.db", place->path);
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
    static char bytes[1 << 20];
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    static const char word[] = "\"language_version\":\"3.11.2\"";
    int changed = 0;
    for (char *at = bytes; (at = memmem(at, (size_t)(bytes + size - at), word, sizeof word - 1)); at += sizeof word) {
        off_t where = at - bytes + (off_t)sizeof word - 3;
        assert_int_equal(pwrite(fd, "9", 1, where), 1);
        struct store_verdict verdict = verify(place, NULL);
        assert_false(verdict.good);
        assert_int_equal(pwrite(fd, "2", 1, where), 1);
        changed++;
    }
    /* In each row, and in each kept result. */
    assert_int_equal(changed, 40);
    assert_true(verify(place, NULL).good);
}

/* What the chain does not cover. */
static void test_verify__finds_changes_beside_the_chain(void **state)
{
    static const struct {
        const char *sql, *text;
    } changes[] = {
        {"CREATE TRIGGER quiet AFTER INSERT ON ledger BEGIN DELETE FROM texts; END",
         "trigger quiet is none of the store's"},
        {"CREATE TABLE extra(x)", "table extra is none of the store's"},
        {"CREATE VIEW seen AS SELECT 1", "view seen is none of the store's"},
        {"DROP INDEX ledger_key", "index ledger_key is missing"},
        {"PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, '$.status', '$.reason') WHERE name = "
         "'ledger'",
         "table ledger is not defined as the store defines it"},
        {"INSERT INTO texts VALUES (99, 'nobody', 'stdout', 0, (SELECT min(number) FROM blobs))",
         "a text is kept for run nobody"},
        {"INSERT INTO blobs VALUES (99, "
         "'6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d', 1, 0, x'00')",
         "content 6e340b9cffb37a98… is kept for no run"},
        {"INSERT INTO accepted VALUES (99, 'r2', '', NULL, '')", "run r2 is in the ledger, and said to go on"},
        {"DELETE FROM alive", "the table `alive` has 0 rows"},
        {"UPDATE spent SET cpu_ms = 0", "the processor time of key '' is not what its runs used"},
        {"DELETE FROM spent", "the processor time of key '' is missing"},
        {"INSERT INTO spent VALUES ('other', 1, 5000)", "the processor time of key 'other'"},
        {"INSERT INTO keys VALUES ('k', x'00', 'n', 1, 0, 0, 0, '{}', '', '', 0, 0, 0)", "an API key cannot be read"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        void *fresh;
        struct store_verdict verdict;
        cordon_error err;
        assert_int_equal(place_setup(&fresh), 0);
        struct place *place = fresh;
        place_begin(place, (struct store_options){.keep = STORE_KEEP_FULL});
        finish_many(place, 3);
        place_end(place);
        assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
        assert_true(verdict.good);
        sqlite3 *file = file_open(place);
        assert_int_equal(sqlite3_exec(file, changes[i].sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(file);
        assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
        if (verdict.good || !strstr(verdict.text, changes[i].text))
            fail_msg("%s: %s", changes[i].sql, verdict.good ? "good" : verdict.text);
        assert_int_equal(place_teardown(&fresh), 0);
    }
}

static void test_verify__wants_the_expected_head(void **state)
{
    struct place *place = *state;
    fill(place);
    struct store_verdict before = verify(place, NULL);
    /* Somebody who may write everything can write everything anew, but not with the same head. */
    nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    fill(place);
    assert_true(verify(place, NULL).good);
    struct store_verdict after = verify(place, before.head);
    assert_false(after.good);
    assert_non_null(strstr(after.text, "no row has the expected hash"));
}

static void test_verify__head_may_lag(void **state)
{
    struct place *place = *state;
    auto_free char *head = NULL, *kept = NULL;
    fill(place);
    head = text_of("%s/ledger.head", place->path);
    kept = text_of("%s/kept", place->path);
    assert_int_equal(rename(head, kept), 0);
    struct store_verdict verdict = verify(place, NULL);
    assert_false(verdict.good);
    assert_non_null(strstr(verdict.text, "ledger.head is missing"));
    assert_int_equal(rename(kept, head), 0);
    FILE *file = fopen(head, "r+");
    assert_int_equal(fputs("junk", file), 1);
    fclose(file);
    assert_non_null(strstr(verify(place, NULL).text, "ledger.head is damaged"));
    file = fopen(head, "w");
    sqlite3 *database = file_open(place);
    sqlite3_stmt *statement;
    sqlite3_prepare_v2(database, "SELECT seq || ' ' || hash FROM ledger WHERE seq = 12", -1, &statement, NULL);
    sqlite3_step(statement);
    fprintf(file, "%s\n", sqlite3_column_text(statement, 0));
    fclose(file);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    assert_true(verify(place, NULL).good);
    /* And what comes next is chained to the last row, not to the head. */
    place_begin(place, full);
    finish(place, "next", "", "");
    place_end(place);
    assert_true(verify(place, NULL).good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_verify__good),
        test(test_verify__finds_and_locates),
        test(test_verify__finds_every_changed_byte),
        test(test_verify__finds_bytes_changed_in_the_file),
        cmocka_unit_test(test_verify__finds_changes_beside_the_chain),
        test(test_verify__wants_the_expected_head),
        test(test_verify__head_may_lag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
