/* `cordon serve`: the daemon. */
#include <cordon/cordon.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/report.h"
#include "service/commands.h"

static const struct usage usage = {
    .synopsis = "cordon serve [OPTION...]",
    .about = "Serves runs over HTTP.",
};

int cmd_serve(int argc, char **argv)
{
    cordon_error err = {0};
    int first = 0, code = options_parse(&usage, argc, argv, NULL, &first, &err);
    return code < 0 ? report_usage(&err, "serve") : 0;
}
