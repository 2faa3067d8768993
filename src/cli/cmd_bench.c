/* `cordon bench`: Cordon beside whatever other runners are installed. Owns the options, the order of the steps, the
 * progress line and Ctrl-C. No figure makes it fail. Called by main(). */
#include <cordon/cordon.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/bench/bench.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"

#define BUSY_PERCENT    10.0
#define OWN_CONTESTANTS 2

atomic_int bench_interrupted;

struct bench {
    struct bench_flags flags;
    struct scratch scratch;
    char *programs[BENCH_CONTESTANTS_MAX]; /* by index of bench_peers; NULL: not here */
    struct row rows[BENCH_WORKLOADS_MAX * BENCH_CONTESTANTS_MAX];
    size_t row_count;
    json_t *machine, *skipped, *notes;
    bool no_cgroup;
};

static uint64_t started_us; /* for the progress line */

static void on_signal(int number)
{
    (void)number;
    if (bench_interrupted++)
        _exit(EXIT_INTERRUPTED);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void show_progress(const struct workload *workload, const char *what, const char *who)
{
    if (!isatty(STDERR_FILENO))
        return;
    uint64_t seconds = (clock_us() - started_us) / 1000000;
    fprintf(stderr, "\r\033[K%llu:%02llu  %s: %s: %s", (unsigned long long)seconds / 60,
            (unsigned long long)seconds % 60, workload->name, what, who);
}

static void end_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static void add_note(struct bench *bench, const char *name, const char *note)
{
    json_array_append_new(bench->notes, json_sprintf("%s: %s", name, note));
}

static void skip(struct bench *bench, const char *name, const struct workload *workload, const char *why)
{
    json_array_append_new(bench->skipped, json_pack("{s:s, s:s, s:s%}", "name", name, "workload", workload->name,
                                                    "reason", why, strnlen(why, BENCH_REASON_SIZE)));
}

/* Those that run this workload rightly go into `contestants`; the count. */
static size_t choose_own(struct bench *bench, const struct workload *workload, struct contestant *contestants)
{
    static const struct contestant own[OWN_CONTESTANTS] = {{.name = "cordon warm", .share = 100, .warm = true},
                                                           {.name = "cordon cold", .share = 100}};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(own) && bench->flags.own && !bench_interrupted; i++) {
        struct contestant *next = &contestants[count];
        char why[BENCH_REASON_SIZE] = "";
        cordon_error err = {0};
        *next = own[i];
        next->no_cgroup = bench->no_cgroup;
        show_progress(workload, "getting ready", next->name);
        if (own_open(next, &bench->scratch, &err) < 0)
            snprintf(why, sizeof why, "%.230s", err.text);
        else if (own_works(next, workload, &bench->scratch, why))
            count++;
        else
            cordon_engine_close(next->engine);
        if (next->no_cgroup && !bench->no_cgroup) {
            bench->no_cgroup = true;
            add_note(bench, "cordon", "without control groups: none can be had here");
        }
        if (*why && !bench_interrupted)
            skip(bench, own[i].name, workload, why);
    }
    return count;
}

static size_t choose_peers(struct bench *bench, const struct workload *workload, struct contestant *contestants)
{
    size_t count = 0;
    for (size_t i = 0; i < bench_peer_count && bench->flags.peers && !bench_interrupted; i++) {
        struct contestant *next = &contestants[count];
        struct lane lane;
        struct sample sample;
        if (!bench->programs[i])
            continue;
        *next = (struct contestant){.name = bench_peers[i].name,
                                    .share = bench_peers[i].share,
                                    .peer = &bench_peers[i],
                                    .program = bench->programs[i]};
        show_progress(workload, "getting ready", next->name);
        lane_open(&lane, next, workload, &bench->scratch, NULL);
        lane_run(&lane, &sample);
        lane_close(&lane);
        if (sample.ok)
            count++;
        else if (!bench_interrupted)
            skip(bench, next->name, workload, sample.why);
    }
    return count;
}

/* Every workload that is left gets the same part of the time that is left. */
static uint64_t end_of_workload(const struct bench *bench, size_t workloads_left)
{
    uint64_t now = clock_us(), end = started_us + bench->flags.settings.budget_s * UINT64_C(1000000);
    if (!bench->flags.settings.budget_s)
        return UINT64_MAX;
    return now + (end > now ? (end - now) / workloads_left : 0);
}

static int run_workload(struct bench *bench, const struct workload *workload, uint64_t end_us, cordon_error *err)
{
    struct contestant contestants[BENCH_CONTESTANTS_MAX] = {0};
    char why[BENCH_REASON_SIZE];
    show_progress(workload, "getting ready", "programs");
    if (!scratch_add(&bench->scratch, workload, why)) {
        skip(bench, "all", workload, why);
        return 0;
    }
    if (peers_prepare(&bench->scratch, workload) < 0)
        return error_sys(err, errno, "bench", "cannot write to %s", bench->scratch.path);
    size_t count = choose_own(bench, workload, contestants);
    count += choose_peers(bench, workload, contestants + count);
    struct row *first = &bench->rows[bench->row_count];
    for (size_t i = 0; i < count; i++)
        first[i] = (struct row){.name = contestants[i].name, .workload = workload->name};
    bench->row_count += count;
    struct measurement all = {.settings = &bench->flags.settings,
                              .workload = workload,
                              .scratch = &bench->scratch,
                              .contestants = contestants,
                              .rows = first,
                              .count = count,
                              .end_us = end_us,
                              .progress = show_progress};
    int code = measure_latency(&all, err);
    if (code == 0 && bench->flags.settings.seconds > 0 && !bench_interrupted)
        code = measure_rates(&all, err);
    for (size_t i = 0; i < count; i++)
        cordon_engine_close(contestants[i].engine);
    return code;
}

/* Which peers are here; a word on those that are not, and on what the others give up. */
static void find_peers(struct bench *bench)
{
    for (size_t i = 0; i < bench_peer_count && bench->flags.peers; i++) {
        bench->programs[i] = peer_program(&bench_peers[i]);
        add_note(bench, bench_peers[i].name,
                 bench->programs[i] ? bench_peers[i].note : "not installed, or not for this user");
    }
}

static void look_at_machine(struct bench *bench)
{
    cordon_engine *engine = NULL;
    cordon_engine_open(NULL, &engine, NULL);
    bench->machine = machine_facts(engine, bench->programs);
    cordon_engine_close(engine);
    json_object_set_new(bench->machine, "cordon", json_string(cordon_version()));
    json_object_set_new(bench->machine, "busy_before_percent", json_real(round(machine_busy_percent() * 10) / 10));
}

static void look_at_machine_again(struct bench *bench)
{
    char text[BENCH_REASON_SIZE];
    double before = json_real_value(json_object_get(bench->machine, "busy_before_percent"));
    double after = round(machine_busy_percent() * 10) / 10;
    json_object_set_new(bench->machine, "busy_after_percent", json_real(after));
    if (before <= BUSY_PERCENT && after <= BUSY_PERCENT)
        return;
    snprintf(text, sizeof text,
             "others used %.1f %% of the processors before and %.1f %% after: the figures say little", before, after);
    add_note(bench, "machine", text);
}

static char *as_json(const struct bench *bench)
{
    const struct settings *settings = &bench->flags.settings;
    json_t *workers = json_array();
    for (size_t k = 0; k < settings->worker_count; k++)
        json_array_append_new(workers, json_integer(settings->workers[k]));
    auto_json json_t *object =
        json_pack("{s:O, s:{s:i, s:f, s:i, s:o, s:o}, s:b, s:o, s:O, s:O}", "machine", bench->machine, "settings",
                  "runs", (int)settings->runs, "seconds", settings->seconds, "gap_ms", (int)settings->gap_ms, "workers",
                  workers, "budget_s", settings->budget_s ? json_integer(settings->budget_s) : json_null(),
                  "interrupted", bench_interrupted != 0, "rows", show_rows(bench->rows, bench->row_count, settings),
                  "skipped", bench->skipped, "notes", bench->notes);
    return object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(8)) : NULL;
}

static void print_account(const struct row *row)
{
    if (row->accounted)
        printf("%s, %s: a median of %.0f us of the caller's time is not in the result's own timing\n", row->workload,
               row->name, row->unaccounted_us);
    if (row->accounted && row->warm_share > 0)
        printf("%s, %s: %.1f %% of the runs were taken by waiting cells\n", row->workload, row->name,
               100 * row->warm_share);
    if (row->errors)
        printf("%s, %s: %zu runs went wrong, the first: %s\n", row->workload, row->name, row->errors, row->why);
}

/* The same reason is told once, however many workloads it holds for. */
static bool told_before(const struct bench *bench, size_t before, const json_t *entry)
{
    for (size_t i = 0; i < before; i++) {
        const json_t *other = json_array_get(bench->skipped, i);
        if (json_equal(json_object_get(other, "name"), json_object_get(entry, "name")) &&
            json_equal(json_object_get(other, "reason"), json_object_get(entry, "reason")))
            return true;
    }
    return false;
}

static void print_report(const struct bench *bench)
{
    size_t index;
    json_t *each;
    show_table(bench->rows, bench->row_count, &bench->flags.settings);
    printf("\n");
    for (size_t i = 0; i < bench->row_count; i++)
        print_account(&bench->rows[i]);
    json_array_foreach(bench->skipped, index, each)
    {
        if (!told_before(bench, index, each))
            printf("%s: left out of %s: %s\n", member_text(each, "name"), member_text(each, "workload"),
                   member_text(each, "reason"));
    }
    json_array_foreach(bench->notes, index, each) printf("%s\n", json_string_value(each));
}

static int save(const struct bench *bench, const char *text, cordon_error *err)
{
    if (!bench->flags.output)
        return 0;
    auto_close int fd = open(bench->flags.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 || fd_write_all(fd, "\n", 1) < 0)
        return error_sys(err, errno, "bench", "cannot write %s", bench->flags.output);
    return 0;
}

static int report(const struct bench *bench)
{
    cordon_error err = {0};
    auto_free char *text = as_json(bench);
    if (!text) {
        error_nomem(&err);
        return report_error(&err, false);
    }
    int failed = bench->flags.json ? report_json_text(text) : 0;
    if (!bench->flags.json)
        print_report(bench);
    if (save(bench, text, &err) < 0)
        return report_error(&err, false);
    if (failed || bench_interrupted)
        return failed ? failed : EXIT_INTERRUPTED;
    for (size_t i = 0; i < bench->row_count; i++)
        if (bench->rows[i].errors && !strncmp(bench->rows[i].name, "cordon", 6))
            return 1;
    return 0;
}

static int measure_all(struct bench *bench, cordon_error *err)
{
    int code = scratch_make(&bench->scratch, err);
    if (code < 0)
        return code;
    find_peers(bench);
    look_at_machine(bench);
    for (size_t i = 0; i < bench->flags.workload_count && code == 0 && !bench_interrupted; i++)
        code = run_workload(bench, bench->flags.workloads[i], end_of_workload(bench, bench->flags.workload_count - i),
                            err);
    if (!bench_interrupted)
        look_at_machine_again(bench);
    return code;
}

static void cleanup_bench(struct bench **bench)
{
    if (!*bench)
        return;
    scratch_remove(&(*bench)->scratch);
    for (size_t i = 0; i < ARRAY_LEN((*bench)->programs); i++)
        free((*bench)->programs[i]);
    json_decref((*bench)->machine);
    json_decref((*bench)->skipped);
    json_decref((*bench)->notes);
    free(*bench);
}

int cmd_bench(int argc, char **argv)
{
    cordon_error err = {0};
    __attribute__((cleanup(cleanup_bench))) struct bench *bench = calloc(1, sizeof *bench);
    if (!bench) {
        error_nomem(&err);
        return report_error(&err, false);
    }
    int code = bench_flags_parse(&bench->flags, argc, argv, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code < 0)
        return report_usage(&err, "bench");
    bench->skipped = json_array();
    bench->notes = json_array();
    catch_signals();
    started_us = clock_us();
    code = measure_all(bench, &err);
    end_progress();
    return code < 0 ? report_error(&err, bench->flags.json) : report(bench);
}
