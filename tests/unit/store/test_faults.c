/* What goes wrong around a store: somebody else has it, the file is damaged or locked, the disk is full. Nothing that
 * was accepted may be lost, and every message says what to do. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "data_place.h"
#include "store/place.h"

static const struct store_options full = {.keep = STORE_KEEP_FULL};

static void test_faults__second_writer(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store *other;
    struct store_options options = {.data_dir = place->path};
    place_begin(place, full);
    assert_int_equal(store_open(&options, &other, &err), CORDON_ESTATE);
    auto_free char *process = text_of("in use by another cordon (process %d)", getpid());
    assert_error(&err, "", process);
    assert_non_null(strstr(err.hint, "--data-dir"));
    options.read_only = true;
    assert_ok(store_open(&options, &other, &err), &err);
    finish(place, "seen", "", "");
    assert_ok(store_flush(place->store, &err), &err);
    char *text;
    assert_ok(store_result(other, "seen", NULL, &text, &err), &err);
    free(text);
    assert_int_equal(store_check(other, &err), CORDON_ESTATE);
    assert_int_equal(try_finish(other, "x", "", "{}", "{}", &err), CORDON_ESTATE);
    store_close(other);
}

static void test_faults__place(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct stat st;
    place_begin(place, full);
    finish(place, "x", "", "");
    assert_ok(store_flush(place->store, &err), &err);
    static const char *const names[] = {"cordon.db", "cordon.db-wal", "cordon.db-shm", "ledger.head", "lock"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        auto_free char *path = text_of("%s/%s", place->path, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    place_end(place);
    chmod(place->path, 0770);
    assert_int_equal(place_try(place, full, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "may be written by others (mode 0770)");
    chmod(place->path, 0700);
    auto_free char *deep = text_of("%s/a/b", place->path);
    struct store *other;
    assert_int_equal(store_open(&(struct store_options){.data_dir = deep, .read_only = true}, &other, &err),
                     CORDON_ENOTFOUND);
    assert_ok(store_open(&(struct store_options){.data_dir = deep}, &other, &err), &err);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    store_close(other);
}

static void overwrite(struct place *place, off_t offset, const char *bytes, size_t length)
{
    auto_free char *path = text_of("%s/cordon.db", place->path);
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, bytes, length, offset), (ssize_t)length);
}

static void test_faults__damaged_file(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store_verdict verdict;
    static char junk[4096];
    memset(junk, 0x5a, sizeof junk);
    place_begin(place, full);
    finish_many(place, 50);
    place_end(place);
    long root = file_number(place, "SELECT rootpage FROM sqlite_schema WHERE name = 'ledger'");
    overwrite(place, (root - 1) * 4096, junk, sizeof junk);
    assert_int_equal(place_try(place, full, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "the file is damaged");
    assert_non_null(strstr(err.text, "cordon.db"));
    assert_non_null(strstr(err.hint, ".recover"));
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_false(verdict.good);
    overwrite(place, 0, junk, sizeof junk);
    assert_int_equal(place_try(place, full, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "it is no SQLite database");
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_false(verdict.good);
    assert_non_null(strstr(verdict.text, "damaged"));
}

static void test_faults__newer_file(void **state)
{
    struct place *place = *state;
    cordon_error err;
    place_begin(place, full);
    place_end(place);
    sqlite3 *file = file_open(place);
    sqlite3_exec(file, "PRAGMA user_version=99", NULL, NULL, NULL);
    sqlite3_close(file);
    assert_int_equal(place_try(place, full, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "is of version 99; this cordon knows versions up to 1");
}

static void test_faults__cut_ledger_is_not_written_on(void **state)
{
    struct place *place = *state;
    cordon_error err;
    place_begin(place, full);
    finish_many(place, 10);
    place_end(place);
    file_change(place, "DELETE FROM ledger WHERE seq > 8");
    assert_int_equal(place_try(place, full, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "ends with row 8, but 10 were written");
}

/* Another writer that holds the file: what was finished waits for it and is there afterwards. */
static void test_faults__locked_file(void **state)
{
    struct place *place = *state;
    cordon_error err;
    place_begin(place, full);
    sqlite3 *file = file_open(place);
    assert_int_equal(sqlite3_exec(file, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    finish_many(place, 5);
    /* Found although nothing could be written yet. */
    json_t *result = result_json(place, "r5");
    assert_string_equal(member(result, "stdout"), "output 5");
    json_decref(result);
    sqlite3_exec(file, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(file);
    assert_ok(store_flush(place->store, &err), &err);
    assert_int_equal(file_number(place, "SELECT count(*) FROM ledger"), 5);
}

/* A small file system of its own over the test's directory, in a mount namespace of its own; false after saying why. */
static bool mount_small(struct place *place, unsigned long flags)
{
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", place->path, "tmpfs", flags, "size=4m,mode=0700") == 0)
        return true;
    const char *must = getenv("CORDON_MUST_RUN");
    if (geteuid() == 0 && must && *must && strcmp(must, "0") != 0)
        fail_msg("must run, but a tmpfs cannot be mounted: %s", strerror(errno));
    print_message("skipped: mounting a tmpfs needs the superuser (%s)\n", strerror(errno));
    return false;
}

static char *fill_up(struct place *place)
{
    static char block[4096];
    char *path = text_of("%s/ballast", place->path);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    return path;
}

static void test_faults__full_disk(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store_verdict verdict;
    if (!mount_small(place, 0))
        skip();
    place_begin(place, full);
    struct store_run kept = {"kept", "", "{\"language\":\"go\"}", NULL, NULL};
    assert_ok(store_accept(place->store, &kept, &err), &err);
    auto_free char *ballast = fill_up(place);
    auto_free char *output = calloc(1, 40001);
    memset(output, 'x', 40000);
    /* More than what the log may still have room for. */
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "f%d", i);
        snprintf(output, 8, "%d", i);
        output[strlen(output)] = 'y';
        finish(place, id, "", output);
    }
    assert_int_equal(store_flush(place->store, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "the disk is full");
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_int_equal(store_check(place->store, &err), CORDON_ESYSTEM);
    struct store_run refused = {"refused", "", "{}", NULL, NULL};
    assert_int_equal(store_accept(place->store, &refused, &err), CORDON_ESYSTEM);
    /* What waits can be read, and more can still end. */
    json_t *result = result_json(place, "f19");
    assert_string_equal(member(result, "status"), "ok");
    json_decref(result);
    finish(place, "kept", "", "the end");
    assert_int_equal(unlink(ballast), 0);
    for (int i = 0; i < 1000 && store_check(place->store, &err) < 0; i++)
        usleep(10000);
    assert_ok(store_flush(place->store, &err), &err);
    assert_ok(store_accept(place->store, &refused, &err), &err);
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 21);
    place_end(place);
    assert_int_equal(umount(place->path), 0);
}

static void test_faults__read_only_file_system(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store_verdict verdict;
    if (!mount_small(place, 0))
        skip();
    place_begin(place, full);
    finish_many(place, 3);
    place_end(place);
    assert_int_equal(mount(NULL, place->path, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    assert_int_equal(place_try(place, full, &err), CORDON_ESYSTEM);
    assert_int_equal(err.sys_errno, EROFS);
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 3);
    assert_ok(place_try(place, (struct store_options){.read_only = true}, &err), &err);
    json_t *result = result_json(place, "r2");
    assert_string_equal(member(result, "stdout"), "output 2");
    json_decref(result);
    place_end(place);
    assert_int_equal(umount(place->path), 0);
}

static void test_faults__default_place(void **state)
{
    static const char *const names[] = {"CORDON_DATA_DIR", "STATE_DIRECTORY", "XDG_STATE_HOME"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two", 1);
    auto_free char *systemd = store_default_dir();
    assert_string_equal(systemd, "/var/lib/one");
    setenv("CORDON_DATA_DIR", "here", 1);
    auto_free char *own = store_default_dir();
    assert_string_equal(own, "here");
    unsetenv("CORDON_DATA_DIR");
    unsetenv("STATE_DIRECTORY");
    setenv("XDG_STATE_HOME", "/state", 1);
    auto_free char *user = store_default_dir();
    assert_string_equal(user, geteuid() == 0 ? "/var/lib/cordon" : "/state/cordon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_faults__second_writer),
        test(test_faults__place),
        test(test_faults__damaged_file),
        test(test_faults__newer_file),
        test(test_faults__cut_ledger_is_not_written_on),
        test(test_faults__locked_file),
        test(test_faults__full_disk),
        test(test_faults__read_only_file_system),
        test(test_faults__default_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
