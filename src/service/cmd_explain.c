/* `cordon explain RUN_ID`: what went wrong with a run that was recorded, and what to change. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/options.h"
#include "cli/report.h"
#include "explain/debug.h"
#include "service/commands.h"
#include "store/place.h"
#include "store/store.h"

struct flags {
    bool json;
    const char *data_dir;
};

static int on_json(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct flags *)context)->json, row, value, err);
}

static int on_data_dir(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    (void)err;
    ((struct flags *)context)->data_dir = value;
    return 0;
}

static const struct option_row rows[] = {
    {"data-dir", 0, "DIR", "where runs are recorded (CORDON_DATA_DIR)", on_data_dir, NULL},
    {"json", 0, NULL, "print the report as an object", on_json, NULL},
};

static const struct usage usage = {
    .synopsis = "cordon explain [OPTION...] RUN_ID",
    .about = "Tells how a recorded run ended, why, where, and what to change: the error, what was denied, and what it\n"
             "used of its limits. `cordon history` lists the runs.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
};

static int read_run(const struct flags *flags, const char *id, json_t **result, json_t **request, cordon_error *err)
{
    auto_free char *usual = flags->data_dir ? NULL : store_default_dir(), *text = NULL, *asked = NULL;
    struct store *store = NULL;
    struct store_options options = {.data_dir = flags->data_dir ? flags->data_dir : usual, .read_only = true};
    if (!options.data_dir)
        return error_nomem(err);
    int code = store_open(&options, &store, err);
    if (code < 0)
        return code;
    code = store_result(store, id, NULL, &text, err);
    if (code == 0 && store_request(store, id, NULL, &asked, NULL) == 0)
        *request = json_loads(asked, JSON_ALLOW_NUL, NULL);
    store_close(store);
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
    fputs(text, stdout);
    if (*text && text[strlen(text) - 1] != '\n')
        putchar('\n');
    return 0;
}

int cmd_explain(int argc, char **argv)
{
    cordon_error err = {0};
    struct flags flags = {0};
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0 && argc - first != 1)
        code = error_set(&err, CORDON_EINVAL, "usage", "expected the id of one run");
    if (code < 0)
        return report_usage(&err, "explain");
    auto_json json_t *result = NULL, *request = NULL;
    if (read_run(&flags, argv[first], &result, &request, &err) < 0)
        return report_error(&err, flags.json);
    auto_json json_t *report = debug_report(result, request);
    return show(report, flags.json);
}
