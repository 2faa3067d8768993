/* `cordon verify-ledger`: whether history is what was written. Called by main(). */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "service/commands.h"
#include "service/store_flags.h"

enum { EXIT_DAMAGED = 1 };

struct flags {
    struct store_flags store;
    const char *head;
};

static int set_head(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    if (strlen(value) != 64 || strspn(value, "0123456789abcdef") != 64)
        return error_set(err, CORDON_EINVAL, "usage", "'%.80s' is no hash; expected 64 digits of lower-case hex",
                         value);
    ((struct flags *)context)->head = value;
    return 0;
}

static const struct option_row rows[] = {
    DATA_DIR_ROW,
    {"head", 0, "HASH", "the head that was kept elsewhere: it must be that of a row", set_head, NULL},
    JSON_ROW("print an object"),
};

static const struct usage usage = {
    .synopsis = "cordon verify-ledger [--data-dir DIR] [--head HASH] [--json]",
    .about = "Checks that every run in the ledger is as it was written, that none is missing, and that every\n"
             "kept text is the one its row tells of. Exit code 1 tells that something was changed.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .anywhere = true,
};

static int print_json(const struct store_verdict *verdict, double seconds)
{
    auto_json json_t *object = json_pack(
        "{s:b, s:I, s:o, s:o, s:s, s:f}", "good", verdict->good, "rows", (json_int_t)verdict->rows, "bad_row",
        verdict->good || !verdict->bad_row ? json_null() : json_integer((json_int_t)verdict->bad_row), "problem",
        verdict->good ? json_null() : json_string(verdict->text), "head", verdict->head, "seconds", seconds);
    auto_free char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    return text ? report_json_text(text) : EXIT_OWN_FAILURE;
}

static int print_text(const struct store_verdict *verdict, double seconds)
{
    if (!verdict->good) {
        terminal_say("the ledger is damaged: %s", verdict->text);
        return 0;
    }
    terminal_tint(stdout, TINT_GOOD, "good");
    printf(": %llu %s checked in %.1f s; head %s\n", (unsigned long long)verdict->rows,
           verdict->rows == 1 ? "row" : "rows", seconds, verdict->head);
    return 0;
}

static int verify(const struct flags *flags)
{
    cordon_error err = {0};
    struct store_verdict verdict = {0};
    auto_free char *path = NULL;
    uint64_t begin = clock_us();
    int code = data_dir_find(flags->store.data_dir, &path, &err);
    if (code == 0)
        code = store_verify(path, flags->head, &verdict, &err);
    if (code < 0) {
        report_error(&err, flags->store.json);
        return EXIT_OWN_FAILURE;
    }
    double seconds = (double)(clock_us() - begin) / 1e6;
    int exit_code = flags->store.json ? print_json(&verdict, seconds) : print_text(&verdict, seconds);
    return exit_code ? exit_code : verdict.good ? 0 : EXIT_DAMAGED;
}

int cmd_verify_ledger(int argc, char **argv)
{
    cordon_error err = {0};
    struct flags flags = {0};
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0)
        code = options_no_words(argc, argv, first, &err);
    return code < 0 ? report_usage(&err, "verify-ledger") : verify(&flags);
}
