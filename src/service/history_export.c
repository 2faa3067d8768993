/* Owns the forms in which `cordon history` hands lists to other programs. CSV is that of RFC 4180, in UTF-8. */
#include "service/history_export.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/plain.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "output/json_text.h"

static const struct column {
    const char *group, *name;
} columns[] = {
    {NULL, "id"},
    {NULL, "created_at"},
    {NULL, "language"},
    {NULL, "status"},
    {NULL, "exit_code"},
    {NULL, "signal"},
    {"usage", "wall_ms"},
    {"usage", "cpu_user_ms"},
    {"usage", "cpu_system_ms"},
    {"usage", "memory_peak_bytes"},
    {"usage", "stdout_bytes"},
    {"usage", "stderr_bytes"},
    {NULL, "key"},
};

static int write_out(const struct buf *text)
{
    if (text->failed) {
        terminal_say("out of memory");
        return EXIT_OWN_FAILURE;
    }
    int code = text->length ? terminal_write(STDOUT_FILENO, text->data, text->length, NULL) : 0;
    if (code < 0 && code != -EPIPE)
        terminal_say("writing standard output: %s", strerror(-code));
    return code == -EPIPE ? EXIT_PIPE_CLOSED : code < 0 ? EXIT_OWN_FAILURE : 0;
}

/* Quotes only where a reader needs them. A spreadsheet takes a value that begins like a formula for one. */
static void put_text(struct buf *line, const char *text)
{
    bool is_formula = *text && strchr("=+-@\t", *text);
    if (!is_formula && !strpbrk(text, ",\"\r\n")) {
        buf_puts(line, text);
        return;
    }
    buf_puts(line, is_formula ? "\"'" : "\"");
    for (; *text; text++) {
        buf_append(line, text, 1);
        if (*text == '"')
            buf_puts(line, "\"");
    }
    buf_puts(line, "\"");
}

static void put_value(struct buf *line, const json_t *value)
{
    auto_free char *text = json_is_number(value) ? json_text(value, NULL) : NULL;
    if (json_is_string(value))
        put_text(line, json_string_value(value));
    else if (text)
        buf_puts(line, text);
}

static void put_row(struct buf *text, const json_t *item)
{
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        const json_t *from = columns[i].group ? json_object_get(item, columns[i].group) : item;
        buf_puts(text, i ? "," : "");
        put_value(text, json_object_get(from, columns[i].name));
    }
    buf_puts(text, "\r\n");
}

static void put_object(struct buf *text, const char *object)
{
    if (isatty(STDOUT_FILENO))
        plain_put_json(text, object, strlen(object));
    else
        buf_puts(text, object);
    buf_puts(text, "\n");
}

int history_export_begin(enum history_format format)
{
    auto_buf struct buf line = {0};
    for (size_t i = 0; format == HISTORY_CSV && i < ARRAY_LEN(columns); i++)
        buf_printf(&line, "%s%s", i ? "," : "", columns[i].name);
    if (format == HISTORY_CSV)
        buf_puts(&line, "\r\n");
    return write_out(&line);
}

int history_export_rows(enum history_format format, const json_t *items)
{
    auto_buf struct buf text = {0};
    size_t i;
    const json_t *item;
    json_array_foreach(items, i, item)
    {
        auto_free char *object = format == HISTORY_JSONL ? json_text(item, NULL) : NULL;
        if (format == HISTORY_CSV)
            put_row(&text, item);
        else if (object)
            put_object(&text, object);
        else
            text.failed = true;
    }
    return write_out(&text);
}
