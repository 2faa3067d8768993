/* What the store's tests share: a data directory for each test, made-up runs, and statements straight to the file. */
#ifndef TESTS_UNIT_STORE_DATA_PLACE_H
#define TESTS_UNIT_STORE_DATA_PLACE_H

#include <ftw.h>
#include <jansson.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "engine/account.h"
#include "store/store.h"
#include "unit.h"

struct place {
    char path[64];
    int open_before;
    struct store *store;
};

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline int place_setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    place->open_before = unit_count_open();
    strcpy(place->path, "/tmp/cordon-store-XXXXXX");
    *state = place;
    return mkdtemp(place->path) ? 0 : -1;
}

static inline int place_teardown(void **state)
{
    struct place *place = *state;
    store_close(place->store);
    nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    int leaked = unit_count_open() - place->open_before;
    free(place);
    return leaked ? -1 : 0;
}

static inline int place_try(struct place *place, struct store_options options, cordon_error *err)
{
    options.data_dir = place->path;
    return store_open(&options, &place->store, err);
}

static inline void place_begin(struct place *place, struct store_options options)
{
    cordon_error err;
    assert_ok(place_try(place, options, &err), &err);
}

static inline void place_end(struct place *place)
{
    store_close(place->store);
    place->store = NULL;
}

static inline char *text_of(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    assert_true(vasprintf(&text, format, args) >= 0);
    va_end(args);
    return text;
}

/* A result as the engine makes them, with what tests look at to choose. */
static inline char *result_of(const char *id, const char *language, const char *status, const char *output)
{
    return text_of("{\"id\":\"%s\",\"state\":\"done\",\"language\":\"%s\",\"language_version\":\"3.11.2\","
                   "\"environment\":\"host\",\"code_sha256\":\"cd3a\",\"created_at\":\"2026-11-15T15:27:16.031Z\","
                   "\"status\":\"%s\",\"success\":true,\"exit_code\":0,\"signal\":null,\"stdout\":\"%s\","
                   "\"stderr\":\"\",\"value\":null,\"compile\":null,\"reason\":null,\"usage\":{\"wall_ms\":67.858,"
                   "\"cpu_user_ms\":9.5,\"cpu_system_ms\":8.0},\"timing\":{\"run_us\":67858},\"limits\":{\"cpus\":1.0,"
                   "\"memory_bytes\":536870912},\"enforced\":{\"isolation\":\"container\"},\"denials\":[{\"kind\":"
                   "\"syscall\",\"what\":\"bpf\",\"count\":3}],\"redactions\":[],\"files\":[],\"tests\":null}",
                   id, language, status, output);
}

/* Nothing told by the text alone counts: what was used is in the account. */
static inline int try_finish(struct store *store, const char *id, const char *key, const char *request,
                             const char *result, cordon_error *err)
{
    const struct account account = {.cells = 1, .cpu_us = 17500, .denied = 3};
    json_t *object = result ? json_loads(result, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL) : NULL;
    struct store_run run = {id, key, request, object, &account};
    int code = store_finish(store, &run, err);
    json_decref(object);
    return code;
}

static inline void finish_with(struct place *place, const char *id, const char *key, const char *request,
                               const char *result)
{
    cordon_error err;
    assert_ok(try_finish(place->store, id, key, request, result, &err), &err);
}

static inline void finish(struct place *place, const char *id, const char *key, const char *output)
{
    auto_free char *result = result_of(id, "python", "ok", output);
    finish_with(place, id, key, "{\"language\":\"python\",\"code\":\"print(1)\"}", result);
}

/* Runs r1, r2, … with an output each. */
static inline void finish_many(struct place *place, unsigned count)
{
    char id[16], output[32];
    for (unsigned i = 1; i <= count; i++) {
        snprintf(id, sizeof id, "r%u", i);
        snprintf(output, sizeof output, "output %u", i);
        finish(place, id, "", output);
    }
}

static inline sqlite3 *file_open(struct place *place)
{
    sqlite3 *file;
    auto_free char *path = text_of("%s/cordon.db", place->path);
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    sqlite3_busy_timeout(file, 2000);
    return file;
}

/* As somebody would who wants to change history. */
static inline void file_change(struct place *place, const char *sql)
{
    sqlite3 *file = file_open(place);
    char *message = NULL;
    sqlite3_exec(file, sql, NULL, NULL, &message);
    if (message)
        fail_msg("%s: %s", sql, message);
    assert_true(sqlite3_total_changes(file) > 0);
    sqlite3_close(file);
}

static inline long file_number(struct place *place, const char *sql)
{
    sqlite3 *file = file_open(place);
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(file, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    long number = (long)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(file);
    return number;
}

static inline json_t *result_json(struct place *place, const char *id)
{
    cordon_error err;
    char *text;
    assert_ok(store_result(place->store, id, NULL, &text, &err), &err);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static inline const char *member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "(none)";
}

#define test(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

#endif
