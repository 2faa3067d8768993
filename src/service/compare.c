/* Owns what it means that a run went as it did before. Pure; called by `cordon replay`. */
#include "service/compare.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"

/* `noise` and `share`: how far a measure may be off before it is worth telling, the larger of both. */
static const struct field {
    const char *group, *name;
    bool decides;
    double noise, share;
} fields[] = {
    {NULL, "status", true, 0, 0},
    {NULL, "exit_code", true, 0, 0},
    {NULL, "signal", true, 0, 0},
    {NULL, "stdout", true, 0, 0},
    {NULL, "stderr", true, 0, 0},
    {NULL, "value", true, 0, 0},
    {NULL, "reason", false, 0, 0},
    {NULL, "language_version", false, 0, 0},
    {NULL, "limits", false, 0, 0},
    {"enforced", "controls", false, 0, 0},
    {"enforced", "isolation", false, 0, 0},
    {"enforced", "network", false, 0, 0},
    {"usage", "wall_ms", false, 50, 0.5},
    {"usage", "cpu_user_ms", false, 50, 0.5},
    {"usage", "cpu_system_ms", false, 50, 0.5},
    {"usage", "memory_program_peak_bytes", false, 4 << 20, 0.25},
    {"usage", "processes_peak", false, 0, 0},
};

static const json_t *find(const json_t *result, const struct field *field)
{
    const json_t *group = field->group ? json_object_get(result, field->group) : result;
    return json_object_get(group, field->name);
}

static bool is_same(const struct field *field, const json_t *before, const json_t *after)
{
    if (field->noise > 0 && json_is_number(before) && json_is_number(after)) {
        double a = json_number_value(before), b = json_number_value(after);
        return fabs(a - b) <= fmax(field->noise, field->share * fmax(a, b));
    }
    bool nothing = !before || json_is_null(before), nothing_now = !after || json_is_null(after);
    return nothing || nothing_now ? nothing == nothing_now : json_equal(before, after);
}

/* What was redacted then is compared with what is not now. */
static bool was_redacted(const json_t *before, const char *name)
{
    size_t i;
    const json_t *redaction;
    json_array_foreach(json_object_get(before, "redactions"), i, redaction)
    {
        const char *stream = json_string_value(json_object_get(redaction, "stream"));
        if (stream && !strcmp(stream, name))
            return true;
    }
    return false;
}

static json_t *value_or_null(const json_t *value)
{
    return value ? json_incref((json_t *)value) : json_null();
}

static json_t *difference(const struct field *field, const json_t *before, const json_t *after)
{
    json_t *name = field->group ? json_sprintf("%s.%s", field->group, field->name) : json_string(field->name);
    return json_pack("{s:o, s:o, s:o, s:b}", "field", name, "before", value_or_null(before), "after",
                     value_or_null(after), "decides", field->decides);
}

static void leave_out(json_t *left_out, const char *field, const char *why)
{
    json_array_append_new(left_out, json_pack("{s:s, s:s}", "field", field, "why", why));
}

/* Why two outputs that look the same need not be the same; NULL when they are. */
static const char *doubt(const char *name, const json_t *before, const json_t *value)
{
    const json_t *cut = json_object_get(before, !strcmp(name, "stdout") ? "stdout_truncated" : "stderr_truncated");
    const char *text = json_string_value(value);
    if (!strcmp(name, "value") || !text)
        return NULL;
    if (json_is_true(cut))
        return "its middle was cut at the output limit";
    return memmem(text, json_string_length(value), "\xef\xbf\xbd", 3)
               ? "bytes in it are not UTF-8 and were replaced; output_encoding base64 keeps them"
               : NULL;
}

static bool is_output(const char *name)
{
    return !strcmp(name, "stdout") || !strcmp(name, "stderr") || !strcmp(name, "value");
}

static void compare_field(const struct field *field, const json_t *before, const json_t *after, json_t *differences,
                          json_t *left_out)
{
    const json_t *then = find(before, field), *now = find(after, field);
    if (is_output(field->name) && was_redacted(before, field->name)) {
        leave_out(left_out, field->name, "something in it was redacted then");
        return;
    }
    if (!is_same(field, then, now)) {
        json_array_append_new(differences, difference(field, then, now));
        return;
    }
    const char *why = is_output(field->name) ? doubt(field->name, before, then) : NULL;
    if (why)
        leave_out(left_out, field->name, why);
}

/* path → hash */
static json_t *hashes(const json_t *result)
{
    json_t *table = json_object();
    size_t i;
    const json_t *file;
    json_array_foreach(json_object_get(result, "files"), i, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        if (path)
            json_object_set(table, path, json_object_get(file, "sha256"));
    }
    return table;
}

static void add_file(json_t *differences, const char *path, const json_t *before, const json_t *after)
{
    json_array_append_new(differences,
                          json_pack("{s:o, s:o, s:o, s:b}", "field", json_sprintf("files/%s", path), "before",
                                    value_or_null(before), "after", value_or_null(after), "decides", 1));
}

static void compare_files(const json_t *before, const json_t *after, json_t *differences, json_t *left_out)
{
    json_t *then = hashes(before), *now = hashes(after), *hash;
    bool was_changed = was_redacted(before, "file");
    const char *path;
    json_object_foreach(then, path, hash)
    {
        const json_t *other = json_object_get(now, path);
        if (!other || (!was_changed && !json_equal(hash, other)))
            add_file(differences, path, hash, other);
    }
    json_object_foreach(now, path, hash)
    {
        if (!json_object_get(then, path))
            add_file(differences, path, NULL, hash);
    }
    if (was_changed)
        leave_out(left_out, "files", "something in their content was redacted then");
    json_decref(then);
    json_decref(now);
}

static void compare_skipped(const json_t *before, const json_t *after, json_t *left_out)
{
    const json_t *results[] = {before, after};
    static const char *const whys[] = {"files were left out of the result then (files_skipped)",
                                       "files are left out of the result (files_skipped)"};
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        const json_t *skipped = json_object_get(results[i], "files_skipped");
        if (json_integer_value(json_object_get(skipped, "count")) > 0) {
            leave_out(left_out, "files", whys[i]);
            return;
        }
    }
}

static bool decides(const json_t *differences)
{
    size_t i;
    const json_t *each;
    json_array_foreach(differences, i, each)
    {
        if (json_is_true(json_object_get(each, "decides")))
            return true;
    }
    return false;
}

json_t *compare_results(const json_t *before, const json_t *after)
{
    json_t *differences = json_array(), *left_out = json_array();
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        compare_field(&fields[i], before, after, differences, left_out);
    compare_files(before, after, differences, left_out);
    compare_skipped(before, after, left_out);
    json_t *same = decides(differences) ? json_false() : json_array_size(left_out) ? json_null() : json_true();
    return json_pack("{s:o, s:o, s:o}", "same", same, "differences", differences, "not_compared", left_out);
}
