/* Owns the shape of a ledger entry and what is kept beside it: made in the thread that finishes a run, so that the
 * writer only chains and writes, and an unusable result is told to who delivered it. Touches no file. */
#include "store/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/sha256.h"
#include "engine/account.h"
#include "output/json_text.h"

/* Fifteen digits bring every number back that was written with fewer. */
#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

static const struct {
    const char *name, *hash;
    bool output; /* what the program said, of which STORE_KEEP_NONE has no hash either */
} parts[TEXT_COUNT] = {
    [TEXT_REQUEST] = {"request", "request_sha256", false},
    [TEXT_STDOUT] = {"stdout", "stdout_sha256", true},
    [TEXT_STDERR] = {"stderr", "stderr_sha256", true},
    [TEXT_RESULT] = {"result", "result_sha256", true},
};

/* Members that an entry has from the result as they are. */
static const char *const copied[] = {"language_version", "environment", "code_sha256", "status",
                                     "exit_code",        "signal",      "reason",      "usage",
                                     "timing",           "limits",      "enforced",    "redactions"};

static void cleanup_json(json_t **json)
{
    json_decref(*json);
}
#define auto_json __attribute__((cleanup(cleanup_json)))

const char *text_part_name(enum text_part part)
{
    return parts[part].name;
}

const char *text_part_hash(enum text_part part)
{
    return parts[part].hash;
}

static void format_time(const struct timespec *when, char text[RECORD_TIME])
{
    struct tm tm;
    gmtime_r(&when->tv_sec, &tm);
    size_t length = strftime(text, RECORD_TIME, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + length, RECORD_TIME - length, ".%03ldZ", when->tv_nsec / 1000000);
}

void record_time_now(char text[RECORD_TIME])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    format_time(&now, text);
}

void record_time(uint64_t seconds, char text[RECORD_TIME])
{
    format_time(&(struct timespec){.tv_sec = (time_t)seconds}, text);
}

void record_free(struct record *record)
{
    free(record->id);
    free(record->key);
    free(record->language);
    free(record->entry);
    for (int i = 0; i < TEXT_COUNT; i++)
        free(record->texts[i].bytes);
    *record = (struct record){0};
}

void record_drop_texts(struct record *record)
{
    for (int i = 0; i < TEXT_COUNT; i++) {
        free(record->texts[i].bytes);
        record->texts[i].bytes = NULL;
        record->texts[i].length = 0;
    }
}

size_t record_bytes(const struct record *record)
{
    size_t bytes = sizeof *record + (record->entry ? strlen(record->entry) : 0);
    for (int i = 0; i < TEXT_COUNT; i++)
        bytes += record->texts[i].length;
    return bytes;
}

static int keep_text(struct record *record, enum text_part part, const char *bytes, size_t length, enum store_keep keep)
{
    struct text *text = &record->texts[part];
    uint8_t digest[SHA256_BYTES];
    if (keep == STORE_KEEP_NONE && parts[part].output)
        return 0;
    sha256_of(bytes, length, digest);
    sha256_text(digest, text->sha256);
    if (keep != STORE_KEEP_FULL)
        return 0;
    text->bytes = malloc(length + 1);
    if (!text->bytes)
        return -1;
    memcpy(text->bytes, bytes, length);
    text->bytes[length] = '\0';
    text->length = length;
    return 0;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static char *dump_entry(const struct record *record, const json_t *result, const struct account *account)
{
    char finished_at[RECORD_TIME];
    record_time_now(finished_at);
    auto_json json_t *entry = json_object();
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        json_t *value = json_object_get(result, copied[i]);
        json_object_set_new(entry, copied[i], value ? json_incref(value) : json_null());
    }
    for (int i = 0; i < TEXT_COUNT; i++)
        json_object_set_new(entry, parts[i].hash, text_or_null(record->texts[i].sha256));
    json_object_set_new(entry, "id", json_string(record->id));
    json_object_set_new(entry, "key", json_string(record->key));
    json_object_set_new(entry, "language", text_or_null(record->language));
    json_object_set_new(entry, "created_at", json_string(record->created_at));
    json_object_set_new(entry, "finished_at", json_string(finished_at));
    json_object_set_new(entry, "cpu_ms", json_real(record->cpu_ms));
    json_object_set_new(entry, "denials_count", json_integer(account ? (json_int_t)account->denied : 0));
    return json_dumps(entry, DUMP_FLAGS | JSON_SORT_KEYS);
}

static int keep_output(struct record *record, json_t *result, enum text_part part, enum store_keep keep)
{
    json_t *output = json_object_get(result, parts[part].name);
    if (!json_is_string(output))
        return 0;
    if (keep_text(record, part, json_string_value(output), json_string_length(output), keep) < 0)
        return -1;
    /* Its place is kept, so that the members come back in their order. */
    return json_object_set_new(result, parts[part].name, json_null());
}

/* The outputs are texts of their own, so the rest is a copy of the outer object alone. */
static int make_finished(struct record *record, const struct store_run *run, enum store_keep keep)
{
    auto_json json_t *result = json_copy((json_t *)run->result);
    if (keep_output(record, result, TEXT_STDOUT, keep) < 0 || keep_output(record, result, TEXT_STDERR, keep) < 0)
        return -1;
    auto_free char *rest = json_text(result, NULL);
    if (!rest || keep_text(record, TEXT_RESULT, rest, strlen(rest), keep) < 0)
        return -1;
    record->cpu_ms = run->account ? account_cpu_ms(run->account) : 0;
    record->entry = dump_entry(record, result, run->account);
    return record->entry ? 0 : -1;
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int make_common(struct record *record, const struct store_run *run, enum store_keep keep)
{
    const json_t *result = run->result;
    auto_json json_t *request = json_loads(run->request ? run->request : "{}", JSON_ALLOW_NUL, NULL);
    const char *language = member(result, "language"), *created = member(result, "created_at");
    if (!language)
        language = member(request, "language");
    record->id = strdup(run->id);
    record->key = strdup(run->key ? run->key : "");
    record->language = language ? strdup(language) : NULL;
    if (created && strlen(created) < RECORD_TIME)
        memcpy(record->created_at, created, strlen(created) + 1);
    else
        record_time_now(record->created_at);
    if (!record->id || !record->key || (language && !record->language))
        return -1;
    return run->request ? keep_text(record, TEXT_REQUEST, run->request, strlen(run->request), keep) : 0;
}

int record_make(struct record *record, const struct store_run *run, enum store_keep keep, cordon_error *err)
{
    *record = (struct record){0};
    if (!run->id || !*run->id)
        return error_set(err, CORDON_EINVAL, "store", "a run without an id cannot be recorded");
    if (run->result && !json_is_object(run->result))
        return error_set(err, CORDON_EINVAL, "store", "the result of run %s is not a JSON object", run->id);
    if (make_common(record, run, keep) < 0 || (run->result && make_finished(record, run, keep) < 0)) {
        record_free(record);
        return error_nomem(err);
    }
    return 0;
}

json_t *record_summary(const char *entry, bool kept)
{
    json_t *made = json_loads(entry, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(made)) {
        json_decref(made);
        return NULL;
    }
    const char *status = member(made, "status");
    json_object_set_new(made, "state", json_string("done"));
    json_object_set_new(made, "success", json_boolean(status && !strcmp(status, "ok")));
    json_object_set_new(made, "kept", json_boolean(kept));
    return made;
}

static int dump(const json_t *value, char **json, cordon_error *err)
{
    *json = value ? json_text(value, NULL) : NULL;
    return *json ? 0 : error_nomem(err);
}

static int unreadable(const char *what, cordon_error *err)
{
    error_set(err, CORDON_ESYSTEM, "store", "%s is damaged: it is not a JSON object", what);
    return error_hint(err, "`cordon verify-ledger` tells what was changed");
}

int record_result(const char *entry, const struct text texts[TEXT_COUNT], char **json, cordon_error *err)
{
    const struct text *rest = &texts[TEXT_RESULT];
    auto_json json_t *result =
        rest->bytes ? json_loadb(rest->bytes, rest->length, JSON_ALLOW_NUL, NULL) : record_summary(entry, false);
    if (!json_is_object(result))
        return unreadable(rest->bytes ? "the kept result" : "the ledger's entry", err);
    for (int i = TEXT_STDOUT; i <= TEXT_STDERR; i++)
        json_object_set_new(result, parts[i].name,
                            texts[i].bytes ? json_stringn(texts[i].bytes, texts[i].length) : json_null());
    if (rest->bytes)
        json_object_set_new(result, "kept", json_true());
    return dump(result, json, err);
}

int record_running(const struct record *record, char **json, cordon_error *err)
{
    auto_json json_t *result =
        json_pack("{s:s, s:s, s:o, s:s, s:s, s:n, s:b, s:n, s:n, s:n, s:n, s:n}", "id", record->id, "state", "running",
                  "language", text_or_null(record->language), "created_at", record->created_at, "key", record->key,
                  "status", "success", 0, "exit_code", "signal", "stdout", "stderr", "reason");
    return dump(result, json, err);
}
