/* Owns the report as a few lines: what ran, how it ended, why, where, what to do. For a model, whose context is dear,
 * and for a terminal, so control characters of the program never reach it. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/plain.h"
#include "explain/debug.h"
#include "explain/debug_parts.h"

#define LINES_MAX   16
#define WIDTH_MAX   240
#define SNIPPET_MAX 5
#define ADVICE_MAX  4
#define TAIL_MAX    3

struct page {
    struct buf text;
    unsigned lines;
};

/* One line of at most WIDTH_MAX bytes; beyond LINES_MAX nothing is added. */
static void put(struct page *page, const char *indent, const char *text, size_t length)
{
    if (page->lines++ >= LINES_MAX)
        return;
    bool cut = length > WIDTH_MAX;
    length = cut ? WIDTH_MAX : length;
    while (cut && length && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    buf_puts(&page->text, indent);
    plain_put(&page->text, text, length, "\t");
    buf_puts(&page->text, cut ? "…\n" : "\n");
}

static void put_text(struct page *page, const char *indent, const char *text)
{
    put(page, indent, text, strlen(text));
}

/* The first lines of a text. */
static void put_lines(struct page *page, const char *indent, const char *text, unsigned most)
{
    for (; *text && most; most--) {
        size_t length = strcspn(text, "\n");
        put(page, indent, text, length);
        text += length + (text[length] == '\n');
    }
}

static const char *last_lines(const char *text, unsigned count)
{
    size_t length = strlen(text);
    while (length && text[length - 1] == '\n')
        length--;
    while (length && count) {
        count -= text[length - 1] == '\n';
        length -= count > 0;
    }
    return text + length;
}

static void put_error(struct page *page, const json_t *error)
{
    const char *snippet = debug_member(error, "snippet"), *category = debug_member(error, "category");
    char place[160];
    auto_buf struct buf line = {0};
    debug_place(error, place, sizeof place);
    if (!*place)
        return;
    buf_printf(&line, "at %s%s%s%s", place, category ? " (" : "", category ? category : "", category ? ")" : "");
    put_text(page, "", buf_text(&line));
    if (snippet)
        put_lines(page, "", snippet, SNIPPET_MAX);
}

static void put_changes(struct page *page, const json_t *report)
{
    const json_t *list = json_object_get(report, "what_to_change");
    size_t i;
    json_t *one;
    if (json_array_size(list))
        put_text(page, "", "to change:");
    json_array_foreach(list, i, one) if (i < ADVICE_MAX && json_is_string(one))
        put(page, " - ", json_string_value(one), json_string_length(one));
}

static void put_denied(struct page *page, const json_t *report)
{
    auto_buf struct buf line = {0};
    const json_t *list = json_object_get(report, "denied");
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row) buf_printf(
        &line, "%s%.60s", i ? ", " : "denied: ", debug_member(row, "what") ? debug_member(row, "what") : "?");
    if (line.length)
        put_text(page, "", buf_text(&line));
}

static void put_usage(struct page *page, const json_t *report)
{
    auto_buf struct buf line = {0};
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(report, "usage"), i, row) if (json_is_true(json_object_get(row, "near")))
        buf_printf(&line, "%s%s %lld%%", line.length ? ", " : "near its limit: ", debug_member(row, "limit"),
                   (long long)json_integer_value(json_object_get(row, "percent")));
    if (line.length)
        put_text(page, "", buf_text(&line));
}

static void put_tail(struct page *page, const json_t *report, const char *stream)
{
    const char *text = debug_member(json_object_get(report, "output"), stream);
    auto_buf struct buf head = {0};
    if (!text || page->lines + 2 > LINES_MAX)
        return;
    buf_printf(&head, "%s ends:", stream);
    put_text(page, "", buf_text(&head));
    put_lines(page, "  ", last_lines(text, TAIL_MAX), TAIL_MAX);
}

char *debug_text(const json_t *report)
{
    struct page page = {0};
    const char *summary = debug_member(report, "summary"), *severity = debug_member(report, "severity");
    put_text(&page, "", summary ? summary : "no result");
    put_error(&page, json_object_get(report, "error"));
    put_changes(&page, report);
    put_denied(&page, report);
    put_usage(&page, report);
    /* A snippet and a place say what the traceback does. */
    bool well = severity && (!strcmp(severity, "none") || !strcmp(severity, "warning"));
    if (!debug_member(json_object_get(report, "error"), "snippet"))
        put_tail(&page, report, well ? "stdout" : "stderr");
    if (!page.text.failed)
        return page.text.data;
    buf_free(&page.text);
    return NULL;
}
