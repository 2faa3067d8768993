/* Owns the order in which contestants take turns, the clockless part of measuring, and the arithmetic. Every contestant
 * runs in blocks, several times over, so that a change in the machine's load falls on all; within a block it follows
 * only itself, so that what a run leaves to be done after its result (a namespace to take apart, a waiting cell to
 * replace) is paid for by the one who caused it. Prints nothing. Called by cmd_bench(). */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/bench/bench.h"

#define ROUNDS    3 /* of latency */
#define PASSES    2 /* of throughput, the second in reverse order */
#define SETTLE_MS 100
#define LEAD_IN   0.2  /* of the time for which runs are counted, before it */
#define SLICE_MIN 0.05 /* seconds; a shorter slice counts too few runs to tell anything */
/* Of the time that is left for a workload: a fifth for the runs back to back, of the rest three eighths for those with
 * gaps, and then the rates. More for one makes the figures of the others less steady. */
#define PACKED_PART 0.2
#define GAPPED_PART 0.375

int lane_open(struct lane *lane, const struct contestant *contestant, const struct workload *workload,
              const struct scratch *scratch, cordon_error *err)
{
    *lane = (struct lane){.contestant = contestant, .workload = workload, .scratch = scratch};
    return contestant->peer ? 0 : own_lane(lane, err);
}

void lane_run(struct lane *lane, struct sample *sample)
{
    if (lane->contestant->peer)
        peer_run(lane, sample);
    else
        own_run(lane, sample);
}

void lane_close(struct lane *lane)
{
    cordon_request_free(lane->request);
    lane->request = NULL;
}

static void pause_ms(unsigned ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&left, NULL);
}

static void count_error(struct row *row, const char *why)
{
    if (!row->errors++)
        snprintf(row->why, sizeof row->why, "%.230s", why);
}

static void count_wrong(struct row *row, const struct sample *sample)
{
    if (!sample->ok && !bench_interrupted)
        count_error(row, sample->why);
}

/* Until what the one before left behind is done with, and what this one needs is there. */
static void settle(const struct lane *lane, unsigned cells, struct row *row)
{
    cordon_error err = {0};
    if (!lane->contestant->peer && own_fill(lane, cells, &err) < 0)
        count_error(row, err.text);
    pause_ms(SETTLE_MS);
}

/* What one contestant's runs gave in one series. */
struct series {
    uint64_t *wall_us;
    int64_t *unaccounted_us;
    size_t count;
    size_t warm;
};

static int series_make(struct series *series, size_t capacity)
{
    series->wall_us = calloc(capacity, sizeof *series->wall_us);
    series->unaccounted_us = calloc(capacity, sizeof *series->unaccounted_us);
    return series->wall_us && series->unaccounted_us ? 0 : -1;
}

static void series_free(struct series *series)
{
    free(series->wall_us);
    free(series->unaccounted_us);
}

static int compare_unsigned(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int compare_signed(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The nearest rank: the smallest value that at least `share` per cent do not exceed. */
static size_t rank(size_t count, unsigned share)
{
    size_t above = (count * share + 99) / 100;
    return above ? above - 1 : 0;
}

static struct percentiles percentiles_of(struct series *series)
{
    size_t count = series->count;
    if (!count)
        return (struct percentiles){0};
    qsort(series->wall_us, count, sizeof *series->wall_us, compare_unsigned);
    return (struct percentiles){.runs = count,
                                .p50_ms = (double)series->wall_us[rank(count, 50)] / 1000,
                                .p90_ms = (double)series->wall_us[rank(count, 90)] / 1000,
                                .p99_ms = (double)series->wall_us[rank(count, 99)] / 1000};
}

static void keep_account(struct row *row, struct series *series)
{
    if (!series->count)
        return;
    qsort(series->unaccounted_us, series->count, sizeof *series->unaccounted_us, compare_signed);
    row->unaccounted_us = (double)series->unaccounted_us[rank(series->count, 50)];
    row->warm_share = (double)series->warm / (double)series->count;
    row->accounted = true;
}

/* A wrong run is an error and no measurement: one that fails at once must not look fast. */
static void record(struct series *series, struct row *row, const struct sample *sample)
{
    count_wrong(row, sample);
    if (!sample->ok || bench_interrupted)
        return;
    series->wall_us[series->count] = sample->wall_us;
    series->unaccounted_us[series->count] = (int64_t)sample->wall_us - (int64_t)sample->timing_us;
    series->count++;
    series->warm += sample->warm;
}

static size_t runs_of(const struct measurement *all, size_t index)
{
    size_t runs = (size_t)all->settings->runs * all->workload->share * all->contestants[index].share / 10000;
    return runs ? runs : 1;
}

/* Shared out over the rounds as evenly as whole numbers allow. */
static size_t block_size(size_t runs, size_t round)
{
    return (round + 1) * runs / ROUNDS - round * runs / ROUNDS;
}

/* The first run is not counted, and one is counted even when time is up. What waits is filled before, as for a burst
 * after a while; how runs fare of which each has to wait for its own cell to be made is for the throughput to tell, of
 * one worker too. */
static void run_block(struct lane *lane, struct series *series, struct row *row, size_t runs, unsigned gap_ms,
                      uint64_t end_us)
{
    struct sample sample;
    if (runs)
        settle(lane, (unsigned)runs + 1, row);
    for (size_t i = 0; runs && i <= runs && (i < 2 || clock_us() < end_us) && !bench_interrupted; i++) {
        if (gap_ms)
            pause_ms(gap_ms);
        lane_run(lane, &sample);
        if (i == 0)
            count_wrong(row, &sample);
        else
            record(series, row, &sample);
    }
}

/* When this part of the time until `end_us` is over. */
static uint64_t part_of(uint64_t end_us, double part)
{
    uint64_t now = clock_us();
    if (end_us == UINT64_MAX)
        return end_us;
    return end_us > now ? now + (uint64_t)((double)(end_us - now) * part) : now;
}

static void run_rounds(const struct measurement *all, struct lane *lanes, struct series *series, unsigned gap_ms,
                       uint64_t end_us)
{
    size_t left = ROUNDS * all->count;
    char what[48];
    if (gap_ms)
        snprintf(what, sizeof what, "latency with gaps of %u ms", gap_ms);
    else
        snprintf(what, sizeof what, "latency back to back");
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < all->count && !bench_interrupted; i++) {
            size_t index = (i + round) % all->count;
            all->progress(all->workload, what, all->contestants[index].name);
            run_block(&lanes[index], &series[index], &all->rows[index], block_size(runs_of(all, index), round), gap_ms,
                      part_of(end_us, 1.0 / (double)left--));
        }
}

static int run_series(const struct measurement *all, struct lane *lanes, unsigned gap_ms, uint64_t end_us,
                      cordon_error *err)
{
    struct series series[BENCH_CONTESTANTS_MAX] = {0};
    int code = 0;
    for (size_t i = 0; i < all->count && code == 0; i++)
        if (series_make(&series[i], runs_of(all, i)) < 0)
            code = error_nomem(err);
    if (code == 0)
        run_rounds(all, lanes, series, gap_ms, end_us);
    for (size_t i = 0; i < all->count; i++) {
        struct row *row = &all->rows[i];
        *(gap_ms ? &row->gapped : &row->packed) = percentiles_of(&series[i]);
        if (!gap_ms && !all->contestants[i].peer)
            keep_account(row, &series[i]);
        series_free(&series[i]);
    }
    return code;
}

int measure_latency(const struct measurement *all, cordon_error *err)
{
    struct lane lanes[BENCH_CONTESTANTS_MAX] = {0};
    int code = 0;
    for (size_t i = 0; i < all->count && code == 0; i++) {
        code = lane_open(&lanes[i], &all->contestants[i], all->workload, all->scratch, err);
        lanes[i].account = !all->contestants[i].peer;
    }
    if (code == 0)
        code = run_series(all, lanes, 0, part_of(all->end_us, PACKED_PART), err);
    if (code == 0 && all->settings->gap_ms)
        code = run_series(all, lanes, all->settings->gap_ms, part_of(all->end_us, GAPPED_PART), err);
    for (size_t i = 0; i < all->count; i++)
        lane_close(&lanes[i]);
    return code;
}

/* One of several callers at once. */
struct worker {
    pthread_t thread;
    bool started;
    struct lane lane;
    uint64_t count_from_us, end_us;
    double rate;
    struct row tally; /* errors only */
};

/* Counts whole runs from the end of one to the end of another, so that neither the filled pool of the beginning nor a
 * run that is cut off at the end falsifies the rate. At least one run is counted. */
static void *work(void *context)
{
    struct worker *worker = context;
    struct sample sample;
    size_t counted = 0;
    uint64_t from = 0, now = 0;
    while (!bench_interrupted && (now < worker->end_us || !counted)) {
        lane_run(&worker->lane, &sample);
        count_wrong(&worker->tally, &sample);
        now = clock_us();
        if (from)
            counted += sample.ok;
        else if (now >= worker->count_from_us)
            from = now;
        if (!sample.ok && now >= worker->end_us)
            break;
    }
    worker->rate = counted && now > from ? (double)counted * 1e6 / (double)(now - from) : 0;
    return NULL;
}

static int start_workers(struct worker *workers, unsigned count, cordon_error *err)
{
    /* Signals are for the thread that waits. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = 0;
    for (unsigned i = 0; i < count && !code; i++) {
        code = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        workers[i].started = !code;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code ? error_sys(err, code, "bench", "cannot start a thread") : 0;
}

/* Runs per second with `count` callers; 0 when interrupted. */
static int run_slice(const struct measurement *all, size_t index, unsigned count, double seconds, double *rate,
                     cordon_error *err)
{
    auto_free struct worker *workers = calloc(count, sizeof *workers);
    int code = workers ? 0 : error_nomem(err);
    for (unsigned i = 0; code == 0 && i < count; i++)
        code = lane_open(&workers[i].lane, &all->contestants[index], all->workload, all->scratch, err);
    if (code == 0)
        settle(&workers[0].lane, count, &all->rows[index]);
    uint64_t begin = clock_us(), lead_in = (uint64_t)(seconds * LEAD_IN * 1e6);
    for (unsigned i = 0; code == 0 && i < count; i++) {
        workers[i].count_from_us = begin + lead_in;
        workers[i].end_us = begin + lead_in + (uint64_t)(seconds * 1e6);
    }
    if (code == 0)
        code = start_workers(workers, count, err);
    *rate = 0;
    for (unsigned i = 0; workers && i < count; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        *rate += workers[i].rate;
        if (workers[i].tally.errors && !all->rows[index].errors)
            memcpy(all->rows[index].why, workers[i].tally.why, sizeof all->rows[index].why);
        all->rows[index].errors += workers[i].tally.errors;
        lane_close(&workers[i].lane);
    }
    if (bench_interrupted)
        *rate = 0;
    return code;
}

/* How long to count in one slice when so many are left; 0 when there is no time for it. */
static double slice_seconds(const struct measurement *all, size_t slices_left)
{
    double wanted = all->settings->seconds / PASSES;
    if (all->end_us == UINT64_MAX)
        return wanted;
    uint64_t now = clock_us();
    double left = all->end_us > now ? (double)(all->end_us - now) / 1e6 / (double)slices_left : 0;
    double room = (left - SETTLE_MS / 1000.0) / (1 + LEAD_IN);
    if (left <= 0)
        return 0;
    return room < SLICE_MIN ? SLICE_MIN : room < wanted ? room : wanted;
}

int measure_rates(const struct measurement *all, cordon_error *err)
{
    const struct settings *settings = all->settings;
    size_t slices_left = settings->worker_count * PASSES * all->count;
    int code = 0;
    for (size_t k = 0; k < settings->worker_count; k++) {
        double sums[BENCH_CONTESTANTS_MAX] = {0};
        unsigned counted[BENCH_CONTESTANTS_MAX] = {0};
        char what[48];
        snprintf(what, sizeof what, "throughput with %u workers", settings->workers[k]);
        for (size_t turn = 0; turn < PASSES * all->count && code == 0 && !bench_interrupted; turn++) {
            size_t index = turn < all->count ? turn : PASSES * all->count - 1 - turn;
            double rate = 0, seconds = slice_seconds(all, slices_left--);
            if (seconds == 0)
                continue;
            all->progress(all->workload, what, all->contestants[index].name);
            code = run_slice(all, index, settings->workers[k], seconds, &rate, err);
            sums[index] += rate;
            counted[index]++;
        }
        for (size_t i = 0; i < all->count && code == 0 && !bench_interrupted; i++)
            all->rows[i].rate[k] = counted[i] ? sums[i] / counted[i] : 0;
    }
    return code;
}
