/* `cordon languages`: what can be run here, and what to install for the rest. Called by main(). */
#include <cordon/cordon.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/warden.h"

enum { COLUMN_ID, COLUMN_NAME, COLUMN_VERSION, COLUMN_ALIASES, COLUMN_INSTALLED, COLUMN_COUNT };

static const struct option_row rows[] = {
    {"json", 0, NULL, "print an object with all details", option_set_flag, NULL},
};

static const struct usage usage = {
    .synopsis = "cordon languages [--json]",
    .about = "Lists the languages Cordon can run: any id or alias goes with 'cordon run -l'. Each is\n"
             "proved by running a small program of it in a cell, several at a time. That takes seconds\n"
             "the first time, and again when a runtime or a package of the host has changed.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
};

/* The array's texts with blanks between; freed by the caller. */
static char *joined(const json_t *array, const char *before)
{
    struct buf text = {0};
    size_t index;
    const json_t *each;
    json_array_foreach(array, index, each)
    {
        const char *word = json_string_value(each);
        buf_printf(&text, "%s%s", index ? " " : before, word ? word : "");
    }
    return text.data;
}

static void fill_row(struct cell_text *row, char **texts, const json_t *language)
{
    bool installed = json_is_true(json_object_get(language, "installed"));
    const char *version = member_text(language, "version");
    texts[0] = joined(json_object_get(language, "aliases"), "");
    const char *problem = member_text(language, "problem");
    if (problem && asprintf(&texts[1], "no: %s", problem) < 0)
        texts[1] = NULL;
    else if (!problem && !installed)
        texts[1] = joined(json_object_get(language, "packages"), "no: apt install ");
    row[COLUMN_ID] = (struct cell_text){member_text(language, "id"), installed ? TINT_BOLD : TINT_NONE};
    row[COLUMN_NAME] = (struct cell_text){member_text(language, "name"), TINT_NONE};
    row[COLUMN_VERSION] = (struct cell_text){version ? version : "-", TINT_NONE};
    row[COLUMN_ALIASES] = (struct cell_text){texts[0] ? texts[0] : "-", TINT_NONE};
    row[COLUMN_INSTALLED] =
        installed ? (struct cell_text){"yes", TINT_GOOD} : (struct cell_text){texts[1] ? texts[1] : "no", TINT_WARN};
}

static int print_table(const json_t *languages)
{
    static const struct cell_text heading[COLUMN_COUNT] = {{"LANGUAGE", TINT_DIM},
                                                           {"NAME", TINT_DIM},
                                                           {"VERSION", TINT_DIM},
                                                           {"ALIASES", TINT_DIM},
                                                           {"INSTALLED", TINT_DIM}};
    const json_t *items = json_object_get(languages, "items");
    size_t count = json_array_size(items);
    auto_free struct cell_text *cells = calloc((count + 1) * COLUMN_COUNT, sizeof *cells);
    auto_free char **texts = calloc(2 * count + 1, sizeof *texts);
    if (!cells || !texts) {
        terminal_say("out of memory");
        return EXIT_OWN_FAILURE;
    }
    for (size_t column = 0; column < COLUMN_COUNT; column++)
        cells[column] = heading[column];
    for (size_t i = 0; i < count; i++)
        fill_row(cells + (i + 1) * COLUMN_COUNT, texts + 2 * i, json_array_get(items, i));
    terminal_table(stdout, cells, COLUMN_COUNT, count + 1);
    for (size_t i = 0; i < 2 * count; i++)
        free(texts[i]);
    return 0;
}

int cmd_languages(int argc, char **argv)
{
    cordon_error err = {0};
    cordon_engine *engine = NULL;
    char *text = NULL;
    bool json = false;
    int first = 0;
    int code = options_parse(&usage, argc, argv, &json, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0)
        code = options_no_words(argc, argv, first, &err);
    if (code < 0)
        return report_usage(&err, "languages");
    code = warden_open_engine(&engine, &err);
    if (code == 0)
        code = cordon_languages(engine, &text, &err);
    cordon_engine_close(engine);
    if (code < 0)
        return report_error(&err, json);
    auto_json json_t *languages = json ? NULL : report_parse(text);
    int exit_code = json ? report_json_text(text) : languages ? print_table(languages) : EXIT_OWN_FAILURE;
    cordon_free(text);
    return exit_code;
}
