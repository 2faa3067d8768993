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
    {NULL, "value", false, 0, 0},
    {NULL, "reason", false, 0, 0},
    {NULL, "language_version", false, 0, 0},
    {NULL, "limits", false, 0, 0},
    {"enforced", "controls", false, 0, 0},
    {"enforced", "isolation", false, 0, 0},
    {"enforced", "network", false, 0, 0},
    {"usage", "wall_ms", false, 50, 0.5},
    {"usage", "cpu_user_ms", false, 50, 0.5},
    {"usage", "cpu_system_ms", false, 50, 0.5},
    {"usage", "memory_peak_bytes", false, 4 << 20, 0.25},
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

json_t *compare_results(const json_t *before, const json_t *after)
{
    bool same = true;
    json_t *differences = json_array(), *left_out = json_array();
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const json_t *then = find(before, &fields[i]), *now = find(after, &fields[i]);
        if (was_redacted(before, fields[i].name)) {
            json_array_append_new(left_out, json_string(fields[i].name));
            continue;
        }
        if (is_same(&fields[i], then, now))
            continue;
        same &= !fields[i].decides;
        json_array_append_new(differences, difference(&fields[i], then, now));
    }
    return json_pack("{s:b, s:o, s:o}", "same", same, "differences", differences, "not_compared", left_out);
}
