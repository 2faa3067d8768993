/* Owns Prometheus' text form 0.0.4: names, HELP and TYPE, escaping. Called with the counts locked. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "service/metrics_table.h"

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct buf *out, const char *before, const char *name, const char *value)
{
    buf_printf(out, "%s%s=\"", before, name);
    for (const char *c = value; *c; c++)
        if (*c == '\n')
            buf_puts(out, "\\n");
        else {
            if (*c == '"' || *c == '\\')
                buf_append(out, "\\", 1);
            buf_append(out, c, 1);
        }
    buf_append(out, "\"", 1);
}

/* One sample with up to three labels; a NULL name ends them. */
static void put_sample(struct buf *out, const char *name, const char *const labels[][2], double value)
{
    buf_puts(out, name);
    for (int i = 0; labels && i < 3 && labels[i][0]; i++)
        put_label(out, i ? "," : "{", labels[i][0], labels[i][1]);
    /* Exact for every whole number below 2^53. */
    buf_printf(out, "%s %.17g\n", labels ? "}" : "", value);
}

static void put_gauge(struct buf *out, const char *name, const char *help, double value)
{
    put_head(out, name, "gauge", help);
    put_sample(out, name, NULL, value);
}

static const char *name_at(const struct names *names, unsigned index)
{
    return index ? names->name[index] : "other";
}

/* A counter with one label; "other" only once it was needed. */
static void put_named(struct buf *out, const char *name, const char *help, const char *label, const struct names *names,
                      const uint64_t *values, double scale)
{
    put_head(out, name, "counter", help);
    for (unsigned i = 0; i <= names->count; i++)
        if (i || values[i])
            put_sample(out, name, (const char *const[][2]){{label, name_at(names, i)}, {NULL}},
                       (double)values[i] / scale);
}

static void put_histogram(struct buf *out, const char *name, const char *label, const char *value,
                          const struct histogram *histogram)
{
    char series[64], bound[24];
    uint64_t sum = 0;
    snprintf(series, sizeof series, "%s_bucket", name);
    for (int i = 0; i <= BUCKETS; i++) {
        sum += histogram->bucket[i];
        snprintf(bound, sizeof bound, "%g", i < BUCKETS ? (double)metrics_bounds_us[i] / 1e6 : 0);
        put_sample(out, series, (const char *const[][2]){{label, value}, {"le", i < BUCKETS ? bound : "+Inf"}, {NULL}},
                   (double)sum);
    }
    snprintf(series, sizeof series, "%s_sum", name);
    put_sample(out, series, (const char *const[][2]){{label, value}, {NULL}}, (double)histogram->sum_us / 1e6);
    snprintf(series, sizeof series, "%s_count", name);
    put_sample(out, series, (const char *const[][2]){{label, value}, {NULL}}, (double)sum);
}

static void put_runs(const struct counts *counts, struct buf *out)
{
    static const char *const phases[PHASE_COUNT] = {"queue", "start", "run", "finish"};
    put_head(out, "cordon_runs_total", "counter", "Runs that have ended, by language and status.");
    for (unsigned i = 0; i <= counts->languages.count; i++)
        for (unsigned j = 0; j < STATUS_COUNT; j++)
            if (counts->runs[i][j])
                put_sample(out, "cordon_runs_total",
                           (const char *const[][2]){
                               {"language", name_at(&counts->languages, i)}, {"status", metrics_statuses[j]}, {NULL}},
                           (double)counts->runs[i][j]);
    put_head(out, "cordon_run_seconds", "histogram", "Time of runs by phase: waiting, start, user code, finish.");
    for (int i = 0; i < PHASE_COUNT; i++)
        put_histogram(out, "cordon_run_seconds", "phase", phases[i], &counts->phases[i]);
    put_named(out, "cordon_cpu_seconds_total", "Processor time of cells, by language.", "language", &counts->languages,
              counts->cpu_us, 1e6);
}

static void put_denials(const struct counts *counts, struct buf *out)
{
    put_head(out, "cordon_denials_total", "counter", "Refused calls, by kind and call.");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        for (unsigned i = 0; i <= counts->denied.count; i++)
            if (counts->denials[kind][i])
                put_sample(out, "cordon_denials_total",
                           (const char *const[][2]){
                               {"kind", metrics_kinds[kind]}, {"what", name_at(&counts->denied, i)}, {NULL}},
                           (double)counts->denials[kind][i]);
}

static void put_output(const struct counts *counts, struct buf *out)
{
    static const char *const streams[] = {"stdout", "stderr"};
    put_named(out, "cordon_redactions_total", "Secrets replaced in output, by rule.", "rule", &counts->rules,
              counts->redactions, 1);
    put_head(out, "cordon_output_bytes_total", "counter", "Bytes that programs printed, kept or not.");
    for (int i = 0; i < 2; i++)
        put_sample(out, "cordon_output_bytes_total", (const char *const[][2]){{"stream", streams[i]}, {NULL}},
                   (double)counts->output_bytes[i]);
}

static void put_http(const struct counts *counts, struct buf *out)
{
    put_head(out, "cordon_http_requests_total", "counter", "Requests answered, by method, route and status code.");
    for (unsigned i = 0; i < counts->http_used; i++) {
        const struct http_count *row = &counts->http[i];
        char code[8];
        snprintf(code, sizeof code, row->status ? "%d" : "other", row->status);
        if (row->count)
            put_sample(out, "cordon_http_requests_total",
                       (const char *const[][2]){{"method", metrics_methods[row->method]},
                                                {"route", name_at(&counts->routes, row->route)},
                                                {"code", code}},
                       (double)row->count);
    }
    put_head(out, "cordon_http_request_seconds", "histogram",
             "From a request's first byte to its last answered one, by route.");
    for (unsigned i = 0; i <= counts->routes.count; i++)
        if (i || counts->http_time[0].sum_us)
            put_histogram(out, "cordon_http_request_seconds", "route", name_at(&counts->routes, i),
                          &counts->http_time[i]);
    put_named(out, "cordon_refused_total", "Requests refused before they ran, by reason.", "reason", &counts->reasons,
              counts->refused, 1);
}

static void put_unrecorded(const struct counts *counts, struct buf *out)
{
    put_head(out, "cordon_unrecorded_runs_total", "counter",
             "Runs that have ended and are missing in the ledger; the log says why.");
    put_sample(out, "cordon_unrecorded_runs_total", NULL, (double)counts->unrecorded);
}

/* Pools of one name and kind differ by limits only, which are no label: they are added up. */
static double pool_sum(const json_t *pools, const json_t *like, const char *key)
{
    double sum = 0;
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool) if (json_equal(json_object_get(pool, "name"), json_object_get(like, "name")) &&
                                           json_equal(json_object_get(pool, "kind"), json_object_get(like, "kind")))
        sum += json_number_value(json_object_get(pool, key));
    return sum;
}

static bool is_first(const json_t *pools, size_t index, bool by_kind)
{
    const json_t *pool = json_array_get(pools, index);
    for (size_t i = 0; i < index; i++) {
        const json_t *other = json_array_get(pools, i);
        if (json_equal(json_object_get(other, "name"), json_object_get(pool, "name")) &&
            (!by_kind || json_equal(json_object_get(other, "kind"), json_object_get(pool, "kind"))))
            return false;
    }
    return true;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "other";
}

static void put_pool_cells(const json_t *pools, struct buf *out)
{
    static const char *const states[] = {"ready", "filling"};
    size_t i;
    json_t *pool;
    put_head(out, "cordon_pool_cells", "gauge", "Cells that wait for a run, or are being made.");
    json_array_foreach(pools, i, pool) for (size_t j = 0; is_first(pools, i, true) && j < ARRAY_LEN(states); j++)
        put_sample(out, "cordon_pool_cells",
                   (const char *const[][2]){
                       {"pool", text_of(pool, "name")}, {"kind", text_of(pool, "kind")}, {"state", states[j]}},
                   pool_sum(pools, pool, states[j]));
}

static bool zygote_serves(const json_t *pools, const json_t *like)
{
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i,
                       pool) if (json_equal(json_object_get(pool, "name"), json_object_get(like, "name")) &&
                                 !strcmp(text_of(json_object_get(pool, "zygote"), "state"), "serving")) return true;
    return false;
}

static void put_zygotes(const json_t *pools, struct buf *out)
{
    size_t i;
    json_t *pool;
    put_head(out, "cordon_zygote_up", "gauge", "Whether the started interpreter that cells are forked from is there.");
    json_array_foreach(pools, i, pool) if (is_first(pools, i, false))
        put_sample(out, "cordon_zygote_up", (const char *const[][2]){{"pool", text_of(pool, "name")}, {NULL}},
                   zygote_serves(pools, pool));
}

static void put_held(const struct metrics_now *now, struct buf *out)
{
    put_head(out, "cordon_held", "gauge", "What is held for all callers, by budget: bytes, and of `calls` the number.");
    for (int i = 0; i < METRICS_BUDGETS && now->held[i].budget; i++)
        put_sample(out, "cordon_held", (const char *const[][2]){{"budget", now->held[i].budget}, {NULL}},
                   (double)now->held[i].held);
    put_head(out, "cordon_held_most", "gauge", "The most that may be held, by budget.");
    for (int i = 0; i < METRICS_BUDGETS && now->held[i].budget; i++)
        put_sample(out, "cordon_held_most", (const char *const[][2]){{"budget", now->held[i].budget}, {NULL}},
                   (double)now->held[i].most);
}

static void put_now(const struct metrics_now *now, struct buf *out)
{
    const struct {
        const char *name, *help;
        double value;
    } gauges[] = {
        {"cordon_runs_running", "Runs under way.", now->running},
        {"cordon_runs_queued", "Runs that wait for a place.", now->queued},
        {"cordon_http_connections", "Open connections.", now->connections},
        {"cordon_http_streams", "Answers being streamed.", now->streams},
        {"cordon_promised_memory_bytes", "Memory limits of running cells together.", (double)now->memory_bytes},
        {"cordon_store_pending", "Runs that have ended and are not on the disk yet.", (double)now->store_pending},
    };
    for (size_t i = 0; i < ARRAY_LEN(gauges); i++)
        put_gauge(out, gauges[i].name, gauges[i].help, gauges[i].value);
    if (now->pools) {
        put_pool_cells(now->pools, out);
        put_zygotes(now->pools, out);
    }
}

static void put_loop(const struct loop_load *load, struct buf *out)
{
    put_head(out, "cordon_loop_turns_total", "counter", "Turns of the daemon's loop.");
    put_sample(out, "cordon_loop_turns_total", NULL, (double)load->turns);
    put_head(out, "cordon_loop_long_turns_total", "counter",
             "Turns that took more than 50 ms of processor time, while nobody else was served.");
    put_sample(out, "cordon_loop_long_turns_total", NULL, (double)load->long_turns);
    put_head(out, "cordon_loop_cpu_seconds_total", "counter", "Processor time of the daemon's loop.");
    put_sample(out, "cordon_loop_cpu_seconds_total", NULL, (double)load->busy_us / 1e6);
    put_gauge(out, "cordon_loop_longest_turn_seconds", "The most processor time of one turn since the start.",
              (double)load->longest_us / 1e6);
}

/* Field 22 of /proc/self/stat: ticks from boot to the start of this process. */
static void put_start_time(struct buf *out)
{
    char text[1024];
    unsigned long long ticks;
    const char *rest = fd_read_text_at(AT_FDCWD, "/proc/self/stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!rest ||
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) != 1)
        return;
    struct timespec now, boot;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    double up = (double)boot.tv_sec + (double)boot.tv_nsec / 1e9 - (double)ticks / (double)sysconf(_SC_CLK_TCK);
    put_gauge(out, "process_start_time_seconds", "Start of the process, seconds since 1970.",
              (double)now.tv_sec + (double)now.tv_nsec / 1e9 - up);
}

static void put_descriptors(struct buf *out)
{
    struct rlimit limit;
    DIR *dir = opendir("/proc/self/fd");
    int count = -3; /* ".", ".." and the directory itself */
    for (; dir && readdir(dir);)
        count++;
    if (dir) {
        closedir(dir);
        put_gauge(out, "process_open_fds", "Open descriptors.", count);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        put_gauge(out, "process_max_fds", "The most descriptors it may open.", (double)limit.rlim_cur);
}

/* What /proc does not let a confined process see is left out, not told as zero. */
static void put_process(struct buf *out)
{
    char text[128];
    unsigned long long pages, resident;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        put_head(out, "process_cpu_seconds_total", "counter", "Processor time of this process.");
        put_sample(out, "process_cpu_seconds_total", NULL,
                   (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    }
    double page = (double)sysconf(_SC_PAGESIZE);
    if (fd_read_text_at(AT_FDCWD, "/proc/self/statm", text, sizeof text) > 0 &&
        sscanf(text, "%llu %llu", &pages, &resident) == 2) {
        put_gauge(out, "process_virtual_memory_bytes", "Address space of this process.", (double)pages * page);
        put_gauge(out, "process_resident_memory_bytes", "Memory of this process.", (double)resident * page);
    }
    put_start_time(out);
    put_descriptors(out);
}

void metrics_write(const struct counts *counts, const struct metrics_now *now, struct buf *out)
{
    put_head(out, "cordon_build_info", "gauge", "The version that runs; always 1.");
    put_sample(out, "cordon_build_info", (const char *const[][2]){{"version", CORDON_VERSION}, {NULL}}, 1);
    put_runs(counts, out);
    put_denials(counts, out);
    put_output(counts, out);
    put_http(counts, out);
    put_unrecorded(counts, out);
    put_now(now, out);
    put_loop(&now->loop, out);
    put_held(now, out);
    put_process(out);
}
