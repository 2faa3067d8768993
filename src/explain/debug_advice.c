/* Owns what the report says to change: a list of sources in the order of their use, each of which adds what the result
 * shows and nothing else. The hints themselves are those of the error analysis and of the policy. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "explain/debug_parts.h"
#include "plan/limits.h"

#define ADVICE_MAX 10
#define CASES_MAX  3
#define DENIED_MAX 4

struct advising {
    const json_t *result, *report;
    const char *status;
    json_t *list;
    bool failed;
};

/* Takes the line, unless an earlier one says it already. */
static void add(struct advising *advising, struct buf *line)
{
    auto_json json_t *text = debug_line(line);
    buf_free(line);
    advising->failed |= !text;
    size_t i;
    json_t *earlier;
    json_array_foreach(advising->list, i,
                       earlier) if (text && strstr(json_string_value(earlier), json_string_value(text))) return;
    if (text && json_array_size(advising->list) < ADVICE_MAX)
        advising->failed |= json_array_append(advising->list, text) != 0;
}

static bool is_status(const struct advising *advising, const char *status)
{
    return !strcmp(advising->status, status);
}

/* "64 MiB", "5 s", "25" */
static const char *show(enum limit limit, int64_t value, char *text, unsigned size)
{
    if (limit_kind(limit) == LIMIT_KIND_TIME)
        return units_format_ms(value, text, size);
    if (limit_kind(limit) == LIMIT_KIND_BYTES)
        return units_format_bytes(value, text, size);
    snprintf(text, size, "%lld", (long long)value);
    return text;
}

static int64_t limit_of(const struct advising *advising, enum limit limit)
{
    return (int64_t)json_number_value(json_object_get(json_object_get(advising->result, "limits"), limit_name(limit)));
}

/* Twice the limit, or twice what is known to be wanted. */
static void put_raise(struct buf *line, const struct advising *advising, enum limit limit, int64_t wanted)
{
    char text[48];
    int64_t old = limit_of(advising, limit), more = old;
    do
        more *= 2;
    while (more <= wanted && more < INT64_MAX / 4);
    buf_printf(line, "set limits.%s to %lld (%s) or more", limit_name(limit), (long long)more,
               show(limit, more, text, sizeof text));
    /* Files are kept in memory, so the one cannot be raised past the other. */
    int64_t memory = limit_of(advising, LIMIT_MEMORY_BYTES);
    if (limit == LIMIT_DISK_BYTES && more > memory)
        buf_printf(line, ", and limits.memory_bytes to at least that, in which it counts");
}

static bool compile_failed(const struct advising *advising)
{
    return json_is_false(json_object_get(json_object_get(advising->result, "compile"), "success"));
}

/* The reason names the limit that ended the run: "…; raise limits.wall_ms". */
static enum limit ended_by(const struct advising *advising)
{
    const char *reason = debug_member(advising->result, "reason");
    const char *name = reason ? strstr(reason, "limits.") : NULL;
    const char *kind = strstr(advising->status, "_limit");
    if (!name || (!kind && !compile_failed(advising)))
        return LIMIT_COUNT;
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)strspn(name + 7, "abcdefghijklmnopqrstuvwxyz_"), name + 7);
    return limit_from_name(word);
}

static void put_hint(struct buf *line, const json_t *error)
{
    const char *hint = debug_member(error, "hint");
    if (hint && !strstr(buf_text(line), hint))
        buf_printf(line, "%s%.500s", line->length ? ": " : "", hint);
}

/* At a limit, the program's own fault is likelier than a limit too small, so that stands first. */
static void advise_limit(struct advising *advising)
{
    struct buf line = {0};
    const json_t *error = json_object_get(advising->report, "error");
    enum limit limit = ended_by(advising);
    if (limit == LIMIT_COUNT)
        return;
    char place[160];
    buf_puts(&line, debug_place(error, place, sizeof place));
    put_hint(&line, error);
    if (line.length)
        add(advising, &line);
    if (compile_failed(advising))
        buf_puts(&line, "the limits of the compile step are fixed: give the compiler less to do");
    else if (limit_of(advising, limit) > 0) {
        put_raise(&line, advising, limit, 0);
        buf_puts(&line, " if it needs more by right");
    }
    if (line.length)
        add(advising, &line);
}

/* The place, the error and the hint in one line: "main.py:2: ZeroDivisionError: division by zero: test it first". */
static void advise_error(struct advising *advising)
{
    const json_t *error = json_object_get(advising->report, "error");
    const char *message = debug_member(error, "message"), *type = debug_member(error, "type");
    const char *field = debug_member(error, "field");
    char place[160];
    if (!json_is_object(error) || ended_by(advising) != LIMIT_COUNT)
        return;
    struct buf line = {0};
    debug_place(error, place, sizeof place);
    buf_puts(&line, *place ? place : field ? field : "");
    if (!*place && !field && !type && !debug_member(error, "hint"))
        buf_puts(&line, "the last thing it said");
    bool is_in_message = type && message && strstr(message, type);
    if (type && !field && !is_in_message)
        buf_printf(&line, "%s%.80s", line.length ? ": " : "", type);
    if (message)
        buf_printf(&line, "%s%.300s", line.length ? ": " : "", message);
    put_hint(&line, error);
    add(advising, &line);
}

static void put_short(struct buf *line, const json_t *text)
{
    const char *bytes = json_string_value(text);
    if (bytes)
        buf_printf(line, "'%.120s'%s", bytes, json_string_length(text) > 120 ? "…" : "");
    else
        buf_puts(line, "nothing");
}

static void advise_tests(struct advising *advising)
{
    unsigned shown = 0;
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(json_object_get(advising->result, "tests"), "cases"), i, one)
    {
        const char *status = debug_member(one, "status"), *name = debug_member(one, "name");
        if (!status || !strcmp(status, "passed") || shown++ == CASES_MAX)
            continue;
        struct buf line = {0};
        buf_printf(&line, "test %.80s: %.40s", name ? name : "without a name", status);
        if (!strcmp(status, "failed") && json_is_string(json_object_get(one, "expected"))) {
            buf_puts(&line, ": expected ");
            put_short(&line, json_object_get(one, "expected"));
            buf_puts(&line, ", got ");
            put_short(&line, json_object_get(one, "got"));
        }
        add(advising, &line);
    }
}

/* Of a program that coped with a refusal nothing needs to change. */
static void advise_denials(struct advising *advising)
{
    size_t i;
    json_t *row;
    const json_t *error = json_object_get(advising->report, "error");
    const char *told = debug_member(error, "hint");
    if (is_status(advising, "ok"))
        return;
    json_array_foreach(json_object_get(advising->report, "denied"), i, row)
    {
        const char *hint = debug_member(row, "hint");
        struct buf line = {0};
        if (!hint || i >= DENIED_MAX || (told && strstr(told, hint)))
            continue;
        buf_printf(&line, "do without %.100s: %.300s", debug_member(row, "what"), hint);
        add(advising, &line);
    }
}

static void advise_output(struct advising *advising)
{
    static const char *const streams[] = {"stdout", "stderr"};
    const json_t *output = json_object_get(advising->report, "output");
    for (size_t i = 0; i < ARRAY_LEN(streams) && !compile_failed(advising); i++) {
        char key[32], text[48];
        snprintf(key, sizeof key, "%s_truncated", streams[i]);
        int64_t limit = limit_of(advising, LIMIT_OUTPUT_BYTES);
        if (!json_is_true(json_object_get(output, key)) || limit <= 0 || ended_by(advising) == LIMIT_OUTPUT_BYTES)
            continue;
        snprintf(key, sizeof key, "%s_bytes", streams[i]);
        int64_t bytes = json_integer_value(json_object_get(output, key));
        struct buf line = {0};
        buf_printf(&line, "%s was cut: %s were printed; print less, or ", streams[i],
                   units_format_bytes(bytes, text, sizeof text));
        put_raise(&line, advising, LIMIT_OUTPUT_BYTES, bytes);
        add(advising, &line);
    }
}

/* Output is advise_output()'s, which knows whether any was lost. */
static void advise_near(struct advising *advising)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(advising->report, "usage"), i, row)
    {
        enum limit limit = limit_from_name(debug_member(row, "limit") ? debug_member(row, "limit") : "");
        if (!json_is_true(json_object_get(row, "near")) || limit == ended_by(advising) || limit == LIMIT_OUTPUT_BYTES ||
            compile_failed(advising))
            continue;
        char used[48], bound[48];
        struct buf line = {0};
        buf_printf(&line, "close to the limit: %s of %s (%lld%%); for larger inputs ",
                   show(limit, (int64_t)json_number_value(json_object_get(row, "used")), used, sizeof used),
                   show(limit, limit_of(advising, limit), bound, sizeof bound),
                   (long long)json_integer_value(json_object_get(row, "percent")));
        put_raise(&line, advising, limit, 0);
        add(advising, &line);
    }
}

static void advise_files(struct advising *advising)
{
    long long skipped =
        json_integer_value(json_object_get(json_object_get(advising->result, "files_skipped"), "count"));
    struct buf line = {0};
    if (skipped <= 0)
        return;
    buf_printf(&line, "%lld files that `collect` asks for were left out; `files_skipped` names them and says why",
               skipped);
    add(advising, &line);
}

/* What is left when nothing above had anything to tell. */
static void advise_silence(struct advising *advising)
{
    static const struct {
        const char *status, *text;
    } texts[] = {
        {"nonzero_exit", "it said nothing on stderr: let it print why before it exits, or look at what it printed"},
        {"compile_error", "look at the compiler's messages"},
        {"cancelled", "nothing in the program: its caller cancelled it"},
        {"rejected", "change the request as the reason says"},
        {"internal_error", "nothing in the program: run it again, and see `cordon doctor` if it stays"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts) && !json_array_size(advising->list); i++) {
        struct buf line = {0};
        if (!is_status(advising, texts[i].status))
            continue;
        buf_puts(&line, texts[i].text);
        add(advising, &line);
    }
}

json_t *debug_advice(const json_t *result, const json_t *report)
{
    static void (*const sources[])(struct advising *) = {advise_limit,  advise_error, advise_tests, advise_denials,
                                                         advise_output, advise_near,  advise_files, advise_silence};
    const char *status = debug_member(result, "status");
    auto_json json_t *list = json_array();
    struct advising advising = {result, report, status ? status : "", list, !list};
    for (size_t i = 0; i < ARRAY_LEN(sources) && !advising.failed; i++)
        sources[i](&advising);
    return advising.failed ? NULL : take_ptr(&list);
}
