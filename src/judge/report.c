/* Owns the reading of framework reports: lines of JSON of our own runners, of `go test -json`, and TAP. What is no
 * report is passed over, because the tests may have written there too. Called by framework.c. */
#include "judge/report.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/show.h"

#define NAME_MOST    200
#define MESSAGE_MOST ((size_t)2 << 10)

static bool next_line(struct slice *text, struct slice *line)
{
    if (!text->length)
        return false;
    const char *end = memchr(text->data, '\n', text->length);
    *line = (struct slice){text->data, end ? (size_t)(end - text->data) : text->length};
    size_t taken = line->length + (end ? 1 : 0);
    *text = (struct slice){text->data + taken, text->length - taken};
    return true;
}

static void count(struct report *report, const char *status)
{
    if (!strcmp(status, "passed"))
        report->passed++;
    else if (!strcmp(status, "skipped"))
        report->skipped++;
    else
        report->failed++;
}

static int add_row(struct report *report, struct slice name, const char *status, struct slice message, double wall_ms)
{
    count(report, status);
    if (json_array_size(report->rows) >= REPORT_ROWS_MAX)
        return 0;
    json_t *row = json_pack("{s:o, s:s, s:o, s:o}", "name", show_text(name, NAME_MOST), "status", status, "message",
                            message.length ? show_text(message, MESSAGE_MOST) : json_null(), "wall_ms",
                            wall_ms >= 0 ? json_real(wall_ms) : json_null());
    return row && json_array_append_new(report->rows, row) == 0 ? 0 : -1;
}

static struct slice member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? (struct slice){json_string_value(value), json_string_length(value)}
                                 : (struct slice){"", 0};
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static json_t *parse(struct slice line)
{
    json_t *object = line.length ? json_loadb(line.data, line.length, JSON_ALLOW_NUL, NULL) : NULL;
    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

static int read_lines(struct slice text, struct report *report)
{
    static const char *const statuses[] = {"passed", "failed", "skipped"};
    int code = 0;
    for (struct slice line; code == 0 && next_line(&text, &line);) {
        json_t *object = parse(line);
        struct slice status = member(object, "status");
        report->missing |= json_is_true(json_object_get(object, "missing"));
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
            if (!strcmp(status.data, statuses[i]))
                code = add_row(report, member(object, "name"), statuses[i], member(object, "message"),
                               number(object, "wall_ms"));
        json_decref(object);
    }
    return code;
}

/* One object for each test, and one for each package, under "package/test": what it printed, and how it ended. */
static int note_go_event(json_t *tests, const json_t *event)
{
    struct slice action = member(event, "Action"), test = member(event, "Test"), output = member(event, "Output");
    auto_buf struct buf key = {0};
    buf_printf(&key, "%s\n%s", member(event, "Package").data, test.data);
    json_t *entry = json_object_get(tests, buf_text(&key));
    if (!entry && json_object_size(tests) < REPORT_ROWS_MAX) {
        entry = json_pack("{s:s, s:s}", "output", "", "name", test.data);
        if (!entry || json_object_set_new(tests, buf_text(&key), entry) < 0)
            return -1;
    }
    if (!entry)
        return 0;
    if (!strcmp(action.data, "output")) {
        struct slice before = member(entry, "output");
        if (before.length > MESSAGE_MOST || !strncmp(output.data, "=== ", 4))
            return 0;
        auto_buf struct buf all = {0};
        buf_append(&all, before.data, before.length);
        buf_append(&all, output.data, output.length);
        return json_object_set_new(entry, "output", json_stringn(buf_text(&all), all.length));
    }
    json_object_set_new(entry, "elapsed", json_real(number(event, "Elapsed")));
    return json_object_set_new(entry, "action", json_string(action.data));
}

static bool has_action(const json_t *entry, const char *action)
{
    return !strcmp(member(entry, "action").data, action);
}

/* A test that has parts is told by those, and a package by its tests, unless it failed by itself. */
static bool is_told_by_others(json_t *tests, const char *key, const json_t *entry)
{
    const char *other_key;
    json_t *other;
    bool failed = has_action(entry, "fail"), has_parts = false;
    size_t length = strlen(key);
    json_object_foreach(tests, other_key, other)
    {
        bool is_part = !strncmp(other_key, key, length) && other_key[length] &&
                       (key[length - 1] == '\n' || other_key[length] == '/');
        if (is_part && (!failed || has_action(other, "fail")))
            return true;
        has_parts |= is_part;
    }
    return key[length - 1] == '\n' && !failed;
}

static int read_go(struct slice text, struct report *report)
{
    static const char *const actions[][2] = {{"pass", "passed"}, {"fail", "failed"}, {"skip", "skipped"}};
    json_t *tests = json_object();
    int code = tests ? 0 : -1;
    for (struct slice line; code == 0 && next_line(&text, &line);) {
        json_t *event = parse(line);
        if (member(event, "Action").length)
            code = note_go_event(tests, event);
        json_decref(event);
    }
    const char *key;
    json_t *entry;
    json_object_foreach(tests, key, entry)
    {
        struct slice name = member(entry, "name"), message = member(entry, "output");
        for (size_t i = 0; code == 0 && i < ARRAY_LEN(actions); i++)
            if (has_action(entry, actions[i][0]) && !is_told_by_others(tests, key, entry))
                code = add_row(report, name.length ? name : (struct slice){key, strlen(key) - 1}, actions[i][1],
                               i == 0 ? (struct slice){"", 0} : message, number(entry, "elapsed") * 1000);
    }
    json_decref(tests);
    return code;
}

struct tap_line {
    struct slice name, message;
    const char *status;
};

/* "ok 1 - name # skip why" */
static bool read_tap_line(struct slice line, struct tap_line *tap)
{
    *tap = (struct tap_line){.status = "passed"};
    const char *at = line.data, *end = line.data + line.length;
    if (line.length >= 4 && !memcmp(at, "not ", 4)) {
        tap->status = "failed";
        at += 4;
    }
    if (end - at < 2 || memcmp(at, "ok", 2) != 0 || (at + 2 < end && at[2] != ' '))
        return false;
    at += 2;
    while (at < end && strchr(" 0123456789", *at))
        at++;
    if (end - at >= 2 && !memcmp(at, "- ", 2))
        at += 2;
    const char *directive = memmem(at, (size_t)(end - at), " # ", 3);
    tap->name = (struct slice){at, (size_t)((directive ? directive : end) - at)};
    if (directive && end - directive >= 7 && !strncasecmp(directive + 3, "skip", 4)) {
        tap->status = "skipped";
        tap->message = (struct slice){directive + 3, (size_t)(end - directive - 3)};
    } else if (directive && end - directive >= 7 && !strncasecmp(directive + 3, "todo", 4))
        tap->status = "skipped";
    return true;
}

static int read_tap(struct slice text, struct report *report)
{
    auto_buf struct buf message = {0};
    struct tap_line tap, next;
    bool has_one = false;
    int code = 0;
    for (struct slice line; code == 0 && next_line(&text, &line);) {
        if (read_tap_line(line, &next)) {
            if (has_one)
                code = add_row(report, tap.name, tap.status,
                               message.length ? (struct slice){message.data, message.length} : tap.message, -1);
            tap = next;
            has_one = true;
            message.length = 0;
        } else if (line.length > 2 && !memcmp(line.data, "# ", 2) && message.length < MESSAGE_MOST) {
            buf_append(&message, line.data + 2, line.length - 2);
            buf_puts(&message, "\n");
        }
    }
    if (has_one && code == 0)
        code = add_row(report, tap.name, tap.status,
                       message.length ? (struct slice){message.data, message.length} : tap.message, -1);
    return code;
}

int report_read(enum report_format format, struct slice text, struct report *report)
{
    static int (*const readers[])(struct slice, struct report *) = {
        [REPORT_LINES] = read_lines, [REPORT_GO] = read_go, [REPORT_TAP] = read_tap};
    *report = (struct report){.rows = json_array()};
    int code = report->rows ? readers[format](text, report) : -1;
    /* A runner that is not there says so in its own way in every format. */
    if (code == 0 && format != REPORT_LINES && !json_array_size(report->rows))
        code = read_lines(text, report);
    if (code < 0)
        report_free(report);
    return code;
}

void report_free(struct report *report)
{
    json_decref(report->rows);
    *report = (struct report){0};
}
