/* The options of `cordon run`, read into a request. */
#ifndef CLI_RUN_FLAGS_H
#define CLI_RUN_FLAGS_H

#include <cordon/request.h>
#include <stdbool.h>

#include "base/buf.h"
#include "cli/options.h"

struct run_flags {
    cordon_request *request; /* owned; filled by the handlers as options come */
    const char *language;    /* borrowed from argv, as everything below */
    const char *code;
    const char *output_dir;
    bool has_stdin;
    bool has_collect, collect_all;
    bool json;
    bool quiet;
    bool no_cache;
    bool warm;
    bool sanitize;        /* anything but none */
    const char *data_dir; /* where the run is recorded; NULL: CORDON_DATA_DIR, or nowhere */
};

extern const struct usage run_usage;

/* Appends a result's reason with the limits in it called as on the command line: "raise --wall", not
 * "raise limits.wall_ms". */
void run_flags_put_reason(struct buf *line, const char *reason);

#endif
