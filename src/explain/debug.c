/* Owns the shape of the debug report. It finds out nothing by itself: every part is read from the result, whose error
 * analysis was made when the run ended. Called for GET …/report and `cordon explain`. */
#include "explain/debug.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "explain/debug_parts.h"
#include "explain/explain.h"
#include "output/utf8.h"
#include "plan/limits.h"

#define TAIL_BYTES_MAX 2000
#define DENIED_MAX     32

const char *debug_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? text : NULL;
}

char *debug_place(const json_t *error, char *text, size_t size)
{
    const char *file = debug_member(error, "file");
    long long line = json_integer_value(json_object_get(error, "line"));
    if (file && line > 0)
        snprintf(text, size, "%.120s:%lld", file, line);
    else
        snprintf(text, size, "%.120s", file ? file : "");
    return text;
}

json_t *debug_line(struct buf *line)
{
    size_t length;
    for (size_t i = 0; i < line->length; i++)
        if ((unsigned char)line->data[i] < 0x20 || line->data[i] == 0x7f)
            line->data[i] = ' ';
    auto_free char *repaired = line->failed ? NULL : utf8_repair(buf_text(line), line->length, &length);
    return repaired ? json_stringn(repaired, length) : NULL;
}

static json_t *copy_or_null(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return value ? json_incref(value) : json_null();
}

/* A refused request has Cordon's own error where a run has the program's; both are told in the latter's words. */
static json_t *error_part(const json_t *result)
{
    static const char *const keys[] = {"type",    "category",  "message", "file",  "line", "column",
                                       "snippet", "traceback", "hint",    "field", "step"};
    const json_t *error = json_object_get(result, "error");
    if (!json_is_object(error))
        return json_null();
    json_t *part = json_object();
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        json_object_set_new(part, keys[i], copy_or_null(error, keys[i]));
    if (debug_member(error, "code")) {
        const char *status = debug_member(result, "status");
        json_object_set_new(part, "type", copy_or_null(error, "code"));
        json_object_set_new(part, "category",
                            json_string(status && !strcmp(status, "rejected") ? "request" : "internal"));
    }
    return part;
}

static json_t *denied_part(const json_t *result)
{
    json_t *list = json_array();
    const json_t *compile = json_object_get(result, "compile");
    /* Where the compile step ended the run, the result's own rows are that step's. */
    const json_t *steps[] = {json_is_true(json_object_get(compile, "success")) ? compile : NULL, result};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        size_t j;
        json_t *row;
        json_array_foreach(json_object_get(steps[i], "denials"), j, row)
        {
            const char *what = debug_member(row, "what"), *hint = debug_member(row, "hint");
            if (!what || json_array_size(list) == DENIED_MAX)
                continue;
            json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:s}", "kind", copy_or_null(row, "kind"), "what",
                                                  what, "count", copy_or_null(row, "count"), "hint", hint ? hint : ""));
        }
    }
    return list;
}

/* The end of a text, from the beginning of a line where one is near, and never from within a character. */
static json_t *tail(const json_t *text)
{
    const char *bytes = json_string_value(text);
    size_t length = json_string_length(text);
    if (!bytes)
        return json_string("");
    if (length > TAIL_BYTES_MAX) {
        const char *start = bytes + length - TAIL_BYTES_MAX;
        const char *line = memchr(start, '\n', TAIL_BYTES_MAX / 4);
        start = line ? line + 1 : start;
        while (((unsigned char)*start & 0xc0) == 0x80)
            start++;
        length -= (size_t)(start - bytes);
        bytes = start;
    }
    return json_stringn(bytes, length);
}

static json_t *output_part(const json_t *result, const json_t *request)
{
    static const char *const streams[] = {"stdout", "stderr"};
    const char *encoding = debug_member(request, "output_encoding");
    bool base64 = encoding && !strcmp(encoding, "base64");
    const json_t *usage = json_object_get(result, "usage");
    json_t *part = json_pack("{s:s}", "encoding", base64 ? "base64" : "utf8");
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        char key[32];
        /* The end of a base64 text is no text. */
        json_object_set_new(part, streams[i], base64 ? json_string("") : tail(json_object_get(result, streams[i])));
        snprintf(key, sizeof key, "%s_truncated", streams[i]);
        json_object_set_new(part, key, json_boolean(json_is_true(json_object_get(result, key))));
        snprintf(key, sizeof key, "%s_bytes", streams[i]);
        json_object_set_new(part, key, copy_or_null(usage, key));
    }
    return part;
}

static double used_of(const json_t *usage, enum limit limit)
{
    static const char *const measures[LIMIT_COUNT][2] = {
        [LIMIT_WALL_MS] = {"wall_ms"},
        [LIMIT_CPU_MS] = {"cpu_user_ms", "cpu_system_ms"},
        [LIMIT_MEMORY_BYTES] = {"memory_peak_bytes"},
        [LIMIT_PROCESSES] = {"processes_peak"},
        [LIMIT_DISK_BYTES] = {"disk_bytes"},
        [LIMIT_INODES] = {"inodes"},
        [LIMIT_OUTPUT_BYTES] = {"stdout_bytes", "stderr_bytes"},
    };
    const char *const *names = measures[limit];
    if (!names[0] || !json_is_number(json_object_get(usage, names[0])))
        return -1;
    double first = json_number_value(json_object_get(usage, names[0]));
    double second = names[1] ? json_number_value(json_object_get(usage, names[1])) : 0;
    /* A limit on output is each stream's own; the others are on the sum. */
    return limit != LIMIT_OUTPUT_BYTES ? first + second : first > second ? first : second;
}

json_t *debug_usage(const json_t *result)
{
    json_t *list = json_array();
    const json_t *usage = json_object_get(result, "usage"), *limits = json_object_get(result, "limits");
    for (int i = 0; i < LIMIT_COUNT; i++) {
        double used = used_of(usage, i);
        json_t *limit = json_object_get(limits, limit_name(i));
        if (used < 0 || !limit)
            continue;
        double bound = json_number_value(limit), percent = bound > 0 ? used * 100 / bound : 0;
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:O, s:o, s:b}", "limit", limit_name(i), "used",
                            limit_kind(i) == LIMIT_KIND_TIME ? json_real(used) : json_integer((json_int_t)used),
                            "limit_value", limit, "percent",
                            bound > 0 ? json_integer((json_int_t)(percent + 0.5)) : json_null(), "near",
                            percent >= DEBUG_NEAR_PERCENT));
    }
    return list;
}

/* "python: nonzero_exit: exited with 1; ZeroDivisionError: division by zero (main.py:2)" */
static json_t *summary_part(const json_t *result)
{
    auto_buf struct buf line = {0};
    char place[160];
    const json_t *error = json_object_get(result, "error");
    const char *language = debug_member(result, "language"), *status = debug_member(result, "status");
    const char *reason = debug_member(result, "reason"), *message = debug_member(error, "message");
    const char *type = debug_member(error, "type");
    buf_printf(&line, "%s%s%s", language ? language : "", language ? ": " : "",
               status                          ? status
               : debug_member(result, "state") ? debug_member(result, "state")
                                               : "unknown");
    if (reason)
        buf_printf(&line, ": %.300s", reason);
    else if (status)
        buf_printf(&line, " in %.3f s",
                   json_number_value(json_object_get(json_object_get(result, "usage"), "wall_ms")) / 1000);
    /* Where the kernel ended it, the reason is the message. */
    if (message && (!reason || !strstr(reason, message)))
        buf_printf(&line, "; %.80s%s%.300s", type ? type : "", type ? ": " : "", message);
    if (*debug_place(error, place, sizeof place))
        buf_printf(&line, " (%s)", place);
    return debug_line(&line);
}

static bool any_near(const json_t *report)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(report, "usage"), i,
                       row) if (json_is_true(json_object_get(row, "near"))) return true;
    return false;
}

static const char *severity(const json_t *result, const json_t *report)
{
    const char *status = debug_member(result, "status");
    if (!status)
        return "none";
    if (!strcmp(status, "internal_error"))
        return "failure";
    if (strcmp(status, "ok") != 0)
        return "error";
    const json_t *output = json_object_get(report, "output");
    bool noteworthy = any_near(report) || json_array_size(json_object_get(report, "denied")) ||
                      json_is_true(json_object_get(output, "stdout_truncated")) ||
                      json_is_true(json_object_get(output, "stderr_truncated"));
    return noteworthy ? "warning" : "none";
}

static json_t *redactions_part(const json_t *result)
{
    json_t *rows = json_object_get(result, "redactions");
    return json_is_array(rows) ? json_incref(rows) : json_array();
}

json_t *debug_report(const json_t *result, const json_t *request)
{
    static const char *const copied[] = {"id",     "state",   "language",  "language_version", "created_at",
                                         "status", "success", "exit_code", "signal",           "reason"};
    auto_json json_t *report = json_object();
    if (!report)
        return NULL;
    int failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(copied); i++)
        failed |= json_object_set_new(report, copied[i], copy_or_null(result, copied[i]));
    failed |= json_object_set_new(report, "summary", summary_part(result));
    failed |= json_object_set_new(report, "error", error_part(result));
    failed |= json_object_set_new(report, "denied", denied_part(result));
    failed |= json_object_set_new(report, "usage", debug_usage(result));
    failed |= json_object_set_new(report, "output", output_part(result, request));
    failed |= json_object_set_new(report, "redactions", redactions_part(result));
    failed |= json_object_set_new(report, "severity", json_string(severity(result, report)));
    failed |= json_object_set_new(report, "what_to_change", debug_advice(result, report));
    return failed ? NULL : take_ptr(&report);
}
