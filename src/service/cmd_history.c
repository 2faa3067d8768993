/* `cordon history`: the runs that were recorded, newest first, or one of them whole. Called by main(). */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "output/json_text.h"
#include "service/commands.h"
#include "service/store_flags.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MOST    100000
#define PAGE          1000

enum {
    COLUMN_ID,
    COLUMN_WHEN,
    COLUMN_LANGUAGE,
    COLUMN_STATUS,
    COLUMN_EXIT,
    COLUMN_WALL,
    COLUMN_MEMORY,
    COLUMN_KEY,
    COLUMN_COUNT
};

struct flags {
    struct store_flags store;
    struct store_query query;
    unsigned limit;
};

static int set_filter(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct flags *flags = context;
    (void)err;
    const char **filter = *row->key == 'l'   ? &flags->query.language
                          : *row->key == 's' ? &flags->query.status
                                             : &flags->query.key;
    *filter = value;
    return 0;
}

static int set_limit(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    int64_t count;
    const char *why;
    (void)row;
    if (units_parse_count(value, &count, &why) != 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%.40s' %s", value, why);
    if (count < 1 || count > LIMIT_MOST)
        return error_set(err, CORDON_EINVAL, "usage", "%lld is out of range; expected 1 to %d", (long long)count,
                         LIMIT_MOST);
    ((struct flags *)context)->limit = (unsigned)count;
    return 0;
}

static const struct option_row rows[] = {
    {"limit", 'n', "N", "how many; 20 if not given", set_limit, NULL},
    {"language", 'l', "LANGUAGE", "only runs in this language", set_filter, "language"},
    {"status", 's', "STATUS", "only runs that ended so: ok, nonzero_exit, wall_limit, …", set_filter, "status"},
    {"key", 'k', "ID", "only runs of this API key", set_filter, "key"},
    DATA_DIR_ROW,
    JSON_ROW("print an object with all details"),
};

static const struct usage usage = {
    .synopsis = "cordon history [OPTION...]\n       cordon history [--data-dir DIR] [--json] ID",
    .about = "Lists the runs that were recorded, newest first, or shows one of them whole.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .anywhere = true,
};

/* Appends one page's items; takes over the cursor of the next. */
static int add_page(struct store *store, struct flags *flags, json_t *items, char **cursor, cordon_error *err)
{
    size_t left = flags->limit - json_array_size(items);
    auto_free char *text = NULL;
    flags->query.cursor = *cursor;
    flags->query.limit = (unsigned)(left < PAGE ? left : PAGE);
    int code = store_list(store, &flags->query, &text, err);
    if (code < 0)
        return code;
    auto_json json_t *page = json_loads(text, JSON_ALLOW_NUL, NULL);
    free(*cursor);
    const char *next = page ? member_text(page, "next_cursor") : NULL;
    *cursor = next ? strdup(next) : NULL;
    return !page || json_array_extend(items, json_object_get(page, "items")) < 0 || (next && !*cursor)
               ? error_nomem(err)
               : 0;
}

static int collect(struct store *store, struct flags *flags, json_t *answer, cordon_error *err)
{
    auto_free char *cursor = NULL;
    json_t *items = json_array();
    json_object_set_new(answer, "items", items);
    int code;
    do
        code = add_page(store, flags, items, &cursor, err);
    while (code == 0 && cursor && json_array_size(items) < flags->limit);
    json_object_set_new(answer, "next_cursor", cursor ? json_string(cursor) : json_null());
    return code;
}

static char *number_text(const json_t *value, const char *unit)
{
    char *text = NULL;
    return json_is_number(value) && asprintf(&text, "%.0f%s", json_number_value(value), unit) >= 0 ? text : NULL;
}

static char *bytes_text(const json_t *value)
{
    char text[40];
    return json_is_integer(value) ? strdup(units_format_bytes(json_integer_value(value), text, sizeof text)) : NULL;
}

/* "2026-11-15 15:27:16" */
static char *time_text(const char *time)
{
    char *text = time ? strndup(time, 19) : NULL;
    if (text && strlen(text) > 10)
        text[10] = ' ';
    return text;
}

static enum tint status_tint(const char *status)
{
    return status && !strcmp(status, "ok")               ? TINT_GOOD
           : status && !strcmp(status, "internal_error") ? TINT_BAD
                                                         : TINT_WARN;
}

/* Texts that were made for a row, to be freed with it. */
enum { MADE_WHEN, MADE_EXIT, MADE_WALL, MADE_MEMORY, MADE_COUNT };

static void fill_row(struct cell_text *row, char **made, const json_t *item)
{
    const json_t *usage_of = json_object_get(item, "usage");
    const char *status = member_text(item, "status");
    made[MADE_WHEN] = time_text(member_text(item, "created_at"));
    made[MADE_EXIT] = number_text(json_object_get(item, "exit_code"), "");
    made[MADE_WALL] = number_text(json_object_get(usage_of, "wall_ms"), " ms");
    made[MADE_MEMORY] = bytes_text(json_object_get(usage_of, "memory_peak_bytes"));
    row[COLUMN_ID] = (struct cell_text){member_text(item, "id"), TINT_NONE};
    row[COLUMN_WHEN] = (struct cell_text){made[MADE_WHEN], TINT_NONE};
    row[COLUMN_LANGUAGE] = (struct cell_text){member_text(item, "language"), TINT_NONE};
    row[COLUMN_STATUS] = (struct cell_text){status, status_tint(status)};
    row[COLUMN_EXIT] = (struct cell_text){made[MADE_EXIT] ? made[MADE_EXIT] : "-", TINT_NONE};
    row[COLUMN_WALL] = (struct cell_text){made[MADE_WALL] ? made[MADE_WALL] : "-", TINT_NONE};
    row[COLUMN_MEMORY] = (struct cell_text){made[MADE_MEMORY] ? made[MADE_MEMORY] : "-", TINT_NONE};
    row[COLUMN_KEY] = (struct cell_text){member_text(item, "key"), TINT_DIM};
}

static int print_table(const json_t *items)
{
    static const char *const heading[COLUMN_COUNT] = {"ID",   "CREATED (UTC)", "LANGUAGE", "STATUS",
                                                      "EXIT", "WALL",          "MEMORY",   "KEY"};
    size_t count = json_array_size(items);
    auto_free struct cell_text *cells = calloc((count + 1) * COLUMN_COUNT, sizeof *cells);
    auto_free char **made = calloc(count * MADE_COUNT + 1, sizeof *made);
    if (!cells || !made) {
        terminal_say("out of memory");
        return EXIT_OWN_FAILURE;
    }
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        cells[i] = (struct cell_text){heading[i], TINT_DIM};
    for (size_t i = 0; i < count; i++)
        fill_row(cells + (i + 1) * COLUMN_COUNT, made + i * MADE_COUNT, json_array_get(items, i));
    terminal_table(stdout, cells, COLUMN_COUNT, count + 1);
    for (size_t i = 0; i < count * MADE_COUNT; i++)
        free(made[i]);
    return 0;
}

static int list(struct store *store, struct flags *flags, cordon_error *err)
{
    auto_json json_t *answer = json_object();
    int code = collect(store, flags, answer, err);
    if (code < 0)
        return code;
    const json_t *items = json_object_get(answer, "items");
    if (!flags->store.json && !json_array_size(items)) {
        terminal_say("no run is recorded that matches");
        return 0;
    }
    if (!flags->store.json)
        return print_table(items);
    auto_free char *text = json_text(answer, NULL);
    return text ? report_json_text(text) : error_nomem(err);
}

/* What a program printed is shown as it is to whoever reads a file, but must not steer a terminal. */
static void print_output(const char *name, const json_t *output)
{
    const unsigned char *text = (const unsigned char *)json_string_value(output);
    size_t length = json_string_length(output);
    if (!length)
        return;
    terminal_tint(stdout, TINT_BOLD, name);
    putchar('\n');
    for (size_t i = 0; i < length; i++) {
        bool control = (text[i] < 0x20 && !strchr("\n\t", text[i])) || text[i] == 0x7f || !text[i] ||
                       (text[i] >= 0x80 && text[i] < 0xa0 && i && text[i - 1] == 0xc2);
        putchar(control ? '?' : text[i]);
    }
    if (text[length - 1] != '\n')
        putchar('\n');
}

static bool is_shown_apart(const char *name)
{
    return !strcmp(name, "stdout") || !strcmp(name, "stderr");
}

/* A member a line, as JSON, which hides control characters; texts of one line without quotes would not be. */
static int print_whole(const json_t *result)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)result, name, value)
    {
        if (is_shown_apart(name) && json_is_string(value))
            continue;
        auto_free char *text = json_text(value, NULL);
        if (!text)
            return EXIT_OWN_FAILURE;
        terminal_tint(stdout, TINT_DIM, name);
        printf("%*s%s\n", (int)(18 - (strlen(name) < 17 ? strlen(name) : 17)), "", text);
    }
    print_output("stdout", json_object_get(result, "stdout"));
    print_output("stderr", json_object_get(result, "stderr"));
    return 0;
}

static int show(struct store *store, const struct flags *flags, const char *id, cordon_error *err)
{
    auto_free char *text = NULL;
    int code = store_result(store, id, NULL, &text, err);
    if (code < 0)
        return code;
    if (flags->store.json)
        return report_json_text(text);
    auto_json json_t *result = report_parse(text);
    return result ? print_whole(result) : EXIT_OWN_FAILURE;
}

int cmd_history(int argc, char **argv)
{
    cordon_error err = {0};
    auto_store struct store *store = NULL;
    struct flags flags = {.limit = LIMIT_DEFAULT};
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    const char *id = first < argc ? argv[first] : NULL;
    if (code == 0)
        code = options_no_words(argc, argv, first + 1, &err);
    if (code < 0)
        return report_usage(&err, "history");
    code = data_dir_open(flags.store.data_dir, &store, &err);
    if (code == 0)
        code = id ? show(store, &flags, id, &err) : list(store, &flags, &err);
    return code < 0 ? report_error(&err, flags.store.json) : code;
}
