/* The options of `cordon bench`. Called by cmd_bench(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/bench/bench.h"
#include "cli/options.h"

#define RUNS_MAX      100000
#define WORKERS_LIMIT 256
#define SECONDS_MAX   3600
#define GAP_MAX       60000
/* What is left of the 90 s that the manual promises is for getting ready and for a slow runner's last run. A larger
 * budget gives steadier figures, a smaller one leaves rates of slow runners out. */
#define BUDGET_S 70

static int take_count(const char *text, unsigned least, unsigned most, unsigned *count, cordon_error *err)
{
    int64_t value = 0;
    const char *why = NULL;
    if (units_parse_count(text, &value, &why) < 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%s' %s", text, why);
    if (value < least || value > most)
        return error_set(err, CORDON_EINVAL, "usage", "%s is not between %u and %u", text, least, most);
    *count = (unsigned)value;
    return 0;
}

static int handle_runs(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row;
    flags->full = true;
    return take_count(value, 1, RUNS_MAX, &flags->settings.runs, err);
}

static int handle_gap(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row;
    return take_count(value, 0, GAP_MAX, &flags->settings.gap_ms, err);
}

static int handle_seconds(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    char *end;
    (void)row;
    double seconds = strtod(value, &end);
    if (end == value || *end || !isfinite(seconds) || seconds < 0 || seconds > SECONDS_MAX)
        return error_set(err, CORDON_EINVAL, "usage", "'%s' is not between 0 and %d", value, SECONDS_MAX);
    flags->settings.seconds = seconds;
    flags->full = true;
    return 0;
}

/* Calls `take` for each word between commas. */
static int each_word(struct bench_flags *flags, const char *list,
                     int (*take)(struct bench_flags *, const char *, cordon_error *), cordon_error *err)
{
    auto_free char *copy = strdup(list);
    int code = copy ? 0 : error_nomem(err);
    for (char *word = copy; word && code == 0;) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma++ = '\0';
        code = take(flags, word, err);
        word = comma;
    }
    return code;
}

static int add_workers(struct bench_flags *flags, const char *word, cordon_error *err)
{
    struct settings *settings = &flags->settings;
    if (settings->worker_count == BENCH_WORKERS_MAX)
        return error_set(err, CORDON_EINVAL, "usage", "more than %d numbers", BENCH_WORKERS_MAX);
    return take_count(word, 1, WORKERS_LIMIT, &settings->workers[settings->worker_count++], err);
}

static int handle_workers(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row;
    flags->settings.worker_count = 0;
    return each_word(flags, value, add_workers, err);
}

static int unknown_workload(const char *name, cordon_error *err)
{
    const char *names[BENCH_WORKLOADS_MAX];
    char list[160] = "";
    for (size_t i = 0; i < bench_workload_count; i++) {
        names[i] = bench_workloads[i].name;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *meant = options_nearest(name, names, bench_workload_count);
    error_set(err, CORDON_EINVAL, "usage", "unknown workload '%s'", name);
    return meant ? error_hint(err, "did you mean %s?", meant) : error_hint(err, "there are %s, and all", list);
}

static int add_workload(struct bench_flags *flags, const char *word, cordon_error *err)
{
    if (!strcmp(word, "all")) {
        flags->workload_count = 0;
        for (size_t i = 0; i < bench_workload_count; i++)
            flags->workloads[flags->workload_count++] = &bench_workloads[i];
        return 0;
    }
    const struct workload *workload = workload_find(word);
    if (!workload)
        return unknown_workload(word, err);
    for (size_t i = 0; i < flags->workload_count; i++)
        if (flags->workloads[i] == workload)
            return 0;
    flags->workloads[flags->workload_count++] = workload;
    return 0;
}

static int handle_workload(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row;
    flags->workload_count = 0;
    return each_word(flags, value, add_workload, err);
}

static int handle_only(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row;
    flags->own = !strcmp(value, "cordon");
    flags->peers = !strcmp(value, "peers");
    if (!flags->own && !flags->peers)
        return error_set(err, CORDON_EINVAL, "usage", "'%s' is neither cordon nor peers", value);
    return 0;
}

static int handle_within(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row;
    return take_count(value, 1, SECONDS_MAX, &flags->settings.budget_s, err);
}

static int handle_full(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row, (void)value, (void)err;
    flags->full = true;
    return 0;
}

static int handle_json(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row, (void)value, (void)err;
    flags->json = true;
    return 0;
}

static int handle_output(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct bench_flags *flags = context;
    (void)row, (void)err;
    /* The object on standard output is the object instead of the table. */
    if (!strcmp(value, "-"))
        flags->json = true;
    else
        flags->output = value;
    return 0;
}

static const struct option_row rows[] = {
    {"workload", 0, "NAMES",
     "true, bash, python, python-work, pandas, node, ruby, go, or all\n(default true,bash,python)", handle_workload,
     NULL},
    {"full", 0, NULL, "measure as long as steady figures take: 10 minutes or more", handle_full, NULL},
    {"within", 0, "S", "end after about so many seconds (default 70)", handle_within, NULL},
    {"runs", 0, "N", "runs of each for the latency (default 100; fewer of slow ones); implies --full", handle_runs,
     NULL},
    {"seconds", 0, "S", "how long each throughput is measured (default 5; 0: not); implies --full", handle_seconds,
     NULL},
    {"workers", 0, "LIST", "how many runs at once (default 1,2,8)", handle_workers, NULL},
    {"gap", 0, "MS", "pause before each run of the second series (default 50; 0: none)", handle_gap, NULL},
    {"only", 0, "WHO", "cordon or peers", handle_only, NULL},
    {"json", 0, NULL, "print one object instead of the table", handle_json, NULL},
    {"output", 'o', "FILE", "write the object to a file as well ('-' is --json)", handle_output, NULL},
};

static const struct usage usage = {
    .synopsis = "cordon bench [OPTION...]",
    .about = "Measures how long a run takes and how many go through in a second: from a cell that waits\n"
             "(cordon warm), from one that is made for it (cordon cold), without any isolation (plain\n"
             "subprocess), and with bubblewrap, runc, crun, firejail, nsjail and podman where they are\n"
             "installed. It ends within 90 seconds, unless --full is given, and so makes fewer runs of what\n"
             "is slow here. Every run's output is checked. The time is the caller's: from the call, or the\n"
             "start of the process, until output and end are known.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .closing = "'true' is a C program that returns 0, 'go' prints a line; both are compiled once, before\n"
               "measuring: Cordon takes them from its compile cache, the others run the executable. The\n"
               "other workloads are source text that Cordon gets with the request and the others find in\n"
               "a file. Runs go in blocks of one contestant, three blocks each, so that the one who causes\n"
               "work after a run also pays for it. Before a block the waiting cells are filled; runs per\n"
               "second are counted when those are used up, also of one caller. The exit code is 1 when a run of Cordon "
               "went wrong.",
};

int bench_flags_parse(struct bench_flags *flags, int argc, char **argv, cordon_error *err)
{
    static const char *const usual[] = {"true", "bash", "python"};
    int first = 0;
    *flags = (struct bench_flags){
        .settings = {.runs = 100, .gap_ms = 50, .seconds = 5, .workers = {1, 2, 8}, .worker_count = 3},
        .own = true,
        .peers = true,
    };
    int code = options_parse(&usage, argc, argv, flags, &first, err);
    if (code == 0)
        code = options_no_words(argc, argv, first, err);
    if (!flags->settings.budget_s && !flags->full)
        flags->settings.budget_s = BUDGET_S;
    bool chosen = flags->workload_count > 0;
    for (size_t i = 0; i < ARRAY_LEN(usual) && !chosen; i++)
        add_workload(flags, usual[i], err);
    return code;
}
