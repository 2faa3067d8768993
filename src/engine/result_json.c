/* The result as JSON: the one shape that command line, API and ledger share. */
#include <jansson.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/control.h"
#include "base/sha256.h"
#include "engine/result.h"
#include "engine/result_files.h"
#include "output/json_text.h"
#include "output/utf8.h"
#include "output/value.h"

void sha256_hex(const void *bytes, size_t length, char hex[65])
{
    uint8_t digest[SHA256_BYTES];
    sha256_of(bytes, length, digest);
    sha256_text(digest, hex);
}

/* Whatever bytes: invalid UTF-8 becomes U+FFFD. */
static json_t *text_json(const char *bytes, size_t length)
{
    size_t repaired_length;
    auto_free char *repaired = utf8_repair(bytes, length, &repaired_length);
    return repaired ? json_stringn(repaired, repaired_length) : NULL;
}

static json_t *string_or_null(const char *text)
{
    return text ? text_json(text, strlen(text)) : json_null();
}

static json_t *base64_json(const char *bytes, size_t length)
{
    size_t encoded_length;
    auto_free char *encoded = base64_encode(bytes, length, &encoded_length);
    return encoded ? json_stringn(encoded, encoded_length) : NULL;
}

static json_t *output_json(const struct outcome *outcome, int stream, bool base64)
{
    const char *bytes = outcome->out[stream] ? outcome->out[stream] : "";
    return base64 ? base64_json(bytes, outcome->out_length[stream]) : text_json(bytes, outcome->out_length[stream]);
}

static json_t *milliseconds(uint64_t us)
{
    return json_real((double)us / 1000);
}

json_t *outcome_usage_json(const struct outcome *outcome)
{
    const struct usage *usage = &outcome->usage;
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "wall_ms", milliseconds(usage->wall_us),
                     "cpu_user_ms", milliseconds(usage->cpu_user_us), "cpu_system_ms",
                     milliseconds(usage->cpu_system_us), "memory_peak_bytes", (json_int_t)usage->memory_peak_bytes,
                     "memory_program_peak_bytes", (json_int_t)usage->memory_program_peak_bytes, "processes_peak",
                     (json_int_t)usage->processes_peak, "disk_bytes", (json_int_t)usage->disk_bytes, "inodes",
                     (json_int_t)usage->inodes, "stdout_bytes", (json_int_t)outcome->out_total[0], "stderr_bytes",
                     (json_int_t)outcome->out_total[1]);
}

static json_t *limits_json(const struct limits *limits)
{
    json_t *object = json_object();
    for (int i = 0; i < LIMIT_COUNT; i++) {
        int64_t value = limits->value[i];
        json_t *item = value == LIMIT_UNLIMITED            ? json_string("unlimited")
                       : limit_kind(i) == LIMIT_KIND_SHARE ? json_real((double)value / 1000)
                                                           : json_integer(value);
        json_object_set_new(object, limit_name(i), item);
    }
    return object;
}

static json_t *enforced_json(const struct outcome *outcome)
{
    static const char *const kinds[] = {"none", "v1", "v2"};
    json_t *controls = json_object();
    for (int i = 0; i < CONTROL_COUNT; i++)
        json_object_set_new(controls, control_name(i),
                            i == CONTROL_CGROUP ? json_string(kinds[outcome->cgroup])
                                                : json_boolean(outcome->controls & CONTROL_BIT(i)));
    bool group = outcome->cgroup != CGROUP_NONE;
    bool warm = outcome->warmth == WARMTH_STARTED || outcome->warmth == WARMTH_FORKED;
    return json_pack("{s:s, s:o, s:s, s:b, s:b, s:s, s:s}", "isolation", "container", "controls", controls, "network",
                     "none", "warm", warm, "shares_layout", outcome->warmth == WARMTH_FORKED, "memory",
                     group ? "group" : "per-process, sampled", "cpu", group ? "group" : "per-process, sampled");
}

static json_t *denials_json(const struct outcome *outcome)
{
    json_t *list = json_array();
    for (size_t i = 0; i < outcome->denial_count; i++) {
        const struct denial *denial = &outcome->denials[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s}", "kind", denial->kind, "what", denial->what,
                                              "count", (json_int_t)denial->count, "hint", denial->hint));
    }
    return list;
}

static json_t *error_json(const cordon_result *result)
{
    const struct explanation *error = &result->error;
    if (!result->has_error)
        return json_null();
    json_t *object = json_object();
    const struct {
        const char *name, *text;
    } texts[] = {{"type", error->type}, {"category", error->category}, {"message", error->message},
                 {"file", error->file}, {"snippet", error->snippet},   {"traceback", error->traceback},
                 {"hint", error->hint}};
    for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
        json_object_set_new(object, texts[i].name, string_or_null(texts[i].text));
    json_object_set_new(object, "line", error->line ? json_integer(error->line) : json_null());
    json_object_set_new(object, "column", error->column ? json_integer(error->column) : json_null());
    return object;
}

static void add_outcome(json_t *object, const struct outcome *outcome, bool base64)
{
    json_object_set_new(object, "status", json_string(cordon_status_name(outcome->status)));
    json_object_set_new(object, "success", json_boolean(outcome->status == CORDON_STATUS_OK));
    json_object_set_new(object, "exit_code", outcome->exit_code >= 0 ? json_integer(outcome->exit_code) : json_null());
    json_object_set_new(object, "signal", outcome->signal ? json_integer(outcome->signal) : json_null());
    json_object_set_new(object, "stdout", output_json(outcome, 0, base64));
    json_object_set_new(object, "stderr", output_json(outcome, 1, base64));
    json_object_set_new(object, "stdout_truncated", json_boolean(outcome->truncated[0]));
    json_object_set_new(object, "stderr_truncated", json_boolean(outcome->truncated[1]));
}

static void add_measures(json_t *object, const struct outcome *outcome, uint64_t queue_us)
{
    json_object_set_new(object, "usage", outcome_usage_json(outcome));
    json_object_set_new(object, "timing",
                        json_pack("{s:I, s:I, s:I, s:I}", "queue_us", (json_int_t)queue_us, "start_us",
                                  (json_int_t)outcome->start_us, "run_us", (json_int_t)outcome->run_us, "finish_us",
                                  (json_int_t)outcome->finish_us));
    json_object_set_new(object, "limits", limits_json(&outcome->limits));
    json_object_set_new(object, "enforced", enforced_json(outcome));
    json_object_set_new(object, "denials", denials_json(outcome));
}

static json_t *compile_json(const cordon_result *result)
{
    if (!result->compile)
        return json_null();
    json_t *object = json_object();
    auto_free char *reason = reason_text(result->compile, "");
    json_object_set_new(object, "reason", string_or_null(reason));
    json_object_set_new(object, "cached", json_boolean(result->compile->cached));
    add_outcome(object, result->compile, result->base64_output);
    add_measures(object, result->compile, 0);
    return object;
}

/* The program wrote it, so it may be anything; only JSON is passed on. */
static json_t *value_json(const cordon_result *result)
{
    json_t *parsed = result->value ? value_parse(result->value, result->value_length) : NULL;
    return parsed ? parsed : json_null();
}

static json_t *redactions_json(const cordon_result *result)
{
    json_t *list = json_array();
    for (size_t i = 0; i < result->redaction_count; i++) {
        const struct result_redaction *row = &result->redactions[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "rule", row->rule, "stream", row->where, "count",
                                              (json_int_t)row->count));
    }
    return list;
}

/* What only a run that began has. */
static void add_origin(json_t *object, const cordon_result *result)
{
    json_object_set_new(object, "language_version", string_or_null(version_of(result->engine, result->manifest)));
    json_object_set_new(object, "environment", json_string("host"));
    json_object_set_new(object, "code_sha256", json_string(result->code_sha256));
}

json_t *result_object(const cordon_result *result)
{
    json_t *object = json_object();
    json_object_set_new(object, "id", json_string(result->id));
    json_object_set_new(object, "state", json_string("done"));
    json_object_set_new(object, "language", json_string(result->language));
    if (result->manifest)
        add_origin(object, result);
    json_object_set_new(object, "created_at", json_string(result->created_at));
    add_outcome(object, &result->program, result->base64_output);
    json_object_set_new(object, "value", value_json(result));
    json_object_set_new(object, "compile", compile_json(result));
    json_object_set_new(object, "reason", string_or_null(result->reason));
    json_object_set_new(object, "error", error_json(result));
    if (result->manifest)
        add_measures(object, &result->program, result->queue_us);
    json_object_set_new(object, "redactions", redactions_json(result));
    json_object_set_new(object, "files", result_files_json(result));
    json_object_set_new(object, "files_skipped", result_files_skipped_json(result));
    json_object_set_new(object, "success", json_boolean(cordon_result_success(result)));
    json_object_set(object, "tests", result->tests ? result->tests : json_null());
    return object;
}

const char *cordon_result_json(cordon_result *result)
{
    if (!result)
        return NULL;
    if (result->json)
        return result->json;
    json_t *object = result_object(result);
    result->json = object ? json_text(object, NULL) : NULL;
    json_decref(object);
    return result->json;
}
