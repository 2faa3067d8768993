/* `cordon version`. Called by main(). */
#include <cordon/cordon.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"

static const struct option_row rows[] = {
    {"json", 0, NULL, "print an object", option_set_flag, NULL},
};

static const struct usage usage = {
    .synopsis = "cordon version [--json]",
    .about = "Prints the version of Cordon.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
};

int cmd_version(int argc, char **argv)
{
    cordon_error err = {0};
    bool json = false;
    int first = 0;
    int code = options_parse(&usage, argc, argv, &json, &first, &err);
    if (code == 0)
        code = options_no_words(argc, argv, first, &err);
    if (code < 0)
        return report_usage(&err, "version");
    if (code == 0)
        printf(json ? "{\"version\":\"%s\"}\n" : "cordon %s\n", cordon_version());
    return 0;
}
