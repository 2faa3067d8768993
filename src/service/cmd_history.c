/* `cordon history`: the runs that were recorded, newest first, or one of them whole. Called by main(). */
#include <cordon/cordon.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/filters.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/plain.h"
#include "base/units.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "output/json_text.h"
#include "service/commands.h"
#include "service/history_export.h"
#include "service/store_flags.h"
#include "service/time_filter.h"

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
    unsigned limit; /* 0: not given */
    enum history_format format;
    char since[TIME_FILTER_BYTES], until[TIME_FILTER_BYTES];
    char *language; /* the id of the one that was given */
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

static int set_time(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct flags *flags = context;
    bool is_end = !strcmp(row->key, "until");
    char *at = is_end ? flags->until : flags->since;
    int code = time_filter(value, is_end, time(NULL), at, err);
    if (code == 0)
        *(is_end ? &flags->query.until : &flags->query.since) = at;
    return code;
}

static int set_format(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    bool is_csv = !strcmp(value, "csv");
    if (!is_csv && strcmp(value, "jsonl") != 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%.40s' is no format; expected jsonl or csv", value);
    ((struct flags *)context)->format = is_csv ? HISTORY_CSV : HISTORY_JSONL;
    return 0;
}

static const struct option_row rows[] = {
    {"limit", 'n', "N", "how many; 20 if not given, or all with --format", set_limit, NULL},
    {"language", 'l', "LANGUAGE", "only runs in this language", set_filter, "language"},
    {"status", 's', "STATUS", "only runs that ended so: ok, nonzero_exit, wall_limit, …", set_filter, "status"},
    {"key", 'k', "ID", "only runs of this API key", set_filter, "key"},
    {"since", 0, "TIME",
     "only runs asked for since then: an age such as 2h or 3d, or a\ndate such as 2026-11-15 or "
     "2026-11-15T15:27 (UTC)",
     set_time, "since"},
    {"until", 0, "TIME", "only runs asked for before then; a date counts whole", set_time, "until"},
    {"format", 0, "jsonl|csv", "for other programs: a line for each run", set_format, NULL},
    DATA_DIR_ROW,
    JSON_ROW("print an object with all details"),
};

static const struct usage usage = {
    .synopsis = "cordon history [OPTION...]\n       cordon history [--data-dir DIR] [--json] ID",
    .about = "Lists the runs that were recorded, newest first, or shows one of them whole, with its code.\n"
             "ID may be the beginning of an id that no other run has.",
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

static int export(struct store *store, struct flags *flags, cordon_error *err)
{
    auto_free char *cursor = NULL;
    int failed = history_export_begin(flags->format), code = 0;
    unsigned left = flags->limit;
    for (bool more = true; more && !failed && code == 0; more = cursor && flags->limit) {
        auto_json json_t *items = json_array();
        code = add_page(store, flags, items, &cursor, err);
        failed = code == 0 ? history_export_rows(flags->format, items) : 0;
        flags->limit -= (unsigned)json_array_size(items);
    }
    flags->limit = left;
    return code < 0 ? code : failed;
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

/* The manifests tell which languages there are, and their aliases. */
static int find_language(struct flags *flags, cordon_error *err)
{
    auto_free char *own = places_own_directory();
    char **directories = NULL;
    struct catalog *catalog = NULL;
    const char *id = NULL;
    int code = own ? places_languages(own, NULL, &directories, err)
                   : error_set(err, CORDON_ESYSTEM, "languages", "cannot find Cordon's own directory");
    if (code == 0)
        code = catalog_open((const char *const *)directories, &catalog, err);
    places_free(directories);
    if (code == 0)
        code = filter_find_language(catalog, flags->query.language, &id, err);
    if (code == 0 && !(flags->language = strdup(id)))
        code = error_nomem(err);
    flags->query.language = flags->language;
    catalog_close(catalog);
    return code;
}

/* Over HTTP these are fields; here they are options. */
static int check_filters(struct store *store, struct flags *flags, cordon_error *err)
{
    int code = flags->query.status ? filter_check_status(flags->query.status, err) : 0;
    if (code == 0 && flags->query.language)
        code = find_language(flags, err);
    if (code == 0 && flags->query.key)
        code = store_check_key(store, flags->query.key, err);
    return code;
}

static int list(struct store *store, struct flags *flags, cordon_error *err)
{
    bool is_export = flags->format != HISTORY_TABLE;
    if (!flags->limit)
        flags->limit = is_export ? UINT_MAX : LIMIT_DEFAULT;
    int code = check_filters(store, flags, err);
    if (code < 0 || is_export)
        return code < 0 ? code : export(store, flags, err);
    auto_json json_t *answer = json_object();
    code = collect(store, flags, answer, err);
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
    const char *text = json_string_value(output);
    size_t length = json_string_length(output);
    if (!length)
        return;
    auto_free char *plain = plain_copy(name);
    terminal_tint(stdout, TINT_BOLD, plain ? plain : "");
    putchar('\n');
    terminal_put(stdout, text, length);
    if (text[length - 1] != '\n')
        putchar('\n');
}

/* What was run: the code, or each file by its name. */
static void print_program(const json_t *request)
{
    const char *path;
    const json_t *content;
    print_output("code", json_object_get(request, "code"));
    json_object_foreach((json_t *)json_object_get(request, "files"), path, content)
    {
        auto_free char *name = NULL;
        if (asprintf(&name, "file %s", path) >= 0 && json_is_string(content))
            print_output(name, content);
        else if (name)
            terminal_put(stdout, name, strlen(name)), puts(": bytes");
    }
}

static bool is_shown_apart(const char *name)
{
    return !strcmp(name, "stdout") || !strcmp(name, "stderr");
}

/* A member a line, as JSON, which hides control characters; texts of one line without quotes would not be. */
static int print_whole(const json_t *result, const json_t *request)
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
        printf("%*s", (int)(18 - (strlen(name) < 17 ? strlen(name) : 17)), "");
        terminal_put(stdout, text, strlen(text));
        putchar('\n');
    }
    print_program(request);
    print_output("stdout", json_object_get(result, "stdout"));
    print_output("stderr", json_object_get(result, "stderr"));
    return 0;
}

static int show(struct store *store, const struct flags *flags, const char *start, cordon_error *err)
{
    auto_free char *text = NULL, *id = NULL, *asked = NULL;
    int code = store_find(store, start, &id, err);
    if (code == 0)
        code = store_result(store, id, NULL, &text, err);
    if (code < 0)
        return code;
    cordon_error why = {0};
    auto_json json_t *result = report_parse(text);
    auto_json json_t *request =
        store_request(store, id, NULL, &asked, &why) == 0 ? json_loads(asked, JSON_ALLOW_NUL, NULL) : NULL;
    if (!result)
        return EXIT_OWN_FAILURE;
    if (flags->store.json) {
        json_object_set_new(result, "request", request ? json_incref(request) : json_null());
        auto_free char *whole = json_text(result, NULL);
        return whole ? report_json_text(whole) : error_nomem(err);
    }
    int failed = print_whole(result, request);
    if (!request)
        terminal_say("%s", why.text);
    return failed;
}

int cmd_history(int argc, char **argv)
{
    cordon_error err = {0};
    auto_store struct store *store = NULL;
    struct flags flags = {0};
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    const char *id = first < argc ? argv[first] : NULL;
    if (code == 0)
        code = options_no_words(argc, argv, first + 1, &err);
    if (code == 0 && id && flags.format != HISTORY_TABLE)
        code = error_set(&err, CORDON_EINVAL, "usage", "--format is for lists; a run is shown whole with --json");
    if (code < 0)
        return report_usage(&err, "history");
    code = data_dir_open(flags.store.data_dir, &store, &err);
    if (code == 0)
        code = id ? show(store, &flags, id, &err) : list(store, &flags, &err);
    free(flags.language);
    return code < 0 ? report_error(&err, flags.store.json) : code;
}
