/* `cordon explain RUN_ID`: what went wrong with a run that was recorded, and what to change. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "explain/debug.h"
#include "service/commands.h"
#include "service/store_flags.h"

static const struct option_row rows[] = {
    DATA_DIR_ROW,
    JSON_ROW("print the report as an object"),
};

static const struct usage usage = {
    .synopsis = "cordon explain [OPTION...] RUN_ID",
    .about = "Tells how a recorded run ended, why, where, and what to change: the error, what was denied, and what it\n"
             "used of its limits. `cordon history` lists the runs.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .anywhere = true,
};

static int read_run(const char *data_dir, const char *start, json_t **result, json_t **request, cordon_error *err)
{
    auto_free char *text = NULL, *asked = NULL, *id = NULL;
    auto_store struct store *store = NULL;
    int code = data_dir_open(data_dir, &store, err);
    if (code == 0)
        code = store_find(store, start, &id, err);
    if (code == 0)
        code = store_result(store, id, NULL, &text, err);
    if (code == 0 && store_request(store, id, NULL, &asked, NULL) == 0)
        *request = json_loads(asked, JSON_ALLOW_NUL, NULL);
    if (code == 0 && !(*result = json_loads(text, JSON_ALLOW_NUL, NULL)))
        code = error_nomem(err);
    return code;
}

static int show(const json_t *report, bool json)
{
    auto_free char *text = json ? json_dumps(report, JSON_INDENT(2)) : debug_text(report);
    cordon_error err;
    if (!text) {
        error_nomem(&err);
        return report_error(&err, false);
    }
    if (json)
        return report_json_text(text);
    terminal_put(stdout, text, strlen(text));
    if (*text && text[strlen(text) - 1] != '\n')
        putchar('\n');
    return 0;
}

int cmd_explain(int argc, char **argv)
{
    cordon_error err = {0};
    struct store_flags flags = {0};
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0 && argc - first != 1)
        code = error_set(&err, CORDON_EINVAL, "usage", "expected the id of one run");
    if (code < 0)
        return report_usage(&err, "explain");
    auto_json json_t *result = NULL, *request = NULL;
    if (read_run(flags.data_dir, argv[first], &result, &request, &err) < 0)
        return report_error(&err, flags.json);
    auto_json json_t *report = debug_report(result, request);
    return show(report, flags.json);
}
