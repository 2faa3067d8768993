/* Owns the threads that run cases and the order of what they find. Workers take cases in turn and hand in verdicts; the
 * calling thread makes rows of them, because only it may use the caller's filter and callback, and watches for a reason
 * to stop. Called by judge.c. */
#include "judge/cases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/result.h"
#include "judge/show.h"

/* How often the calling thread looks whether it was asked to stop. */
#define WATCH_MS 20
/* Texts of all rows together, about; and the bounds of one. */
#define SHOWN_BYTES ((size_t)4 << 20)
#define SHOWN_MOST  ((size_t)4 << 10)
#define SHOWN_LEAST ((size_t)256)
#define REASON_MOST ((size_t)1 << 10)

struct work {
    struct bench *bench;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t next, bound; /* the next case, and where to stop */
    unsigned working;
    struct verdict done[CASES_PARALLEL_MAX];
    size_t done_count, capacity; /* no more than this wait, because each holds what a program printed */
    cordon_error error;          /* the first that ended everything */
};

static void hand_in(struct work *work, struct verdict *verdict)
{
    while (work->done_count == work->capacity)
        pthread_cond_wait(&work->changed, &work->lock);
    work->done[work->done_count++] = *verdict;
    pthread_cond_broadcast(&work->changed);
}

static void give_up(struct work *work, const cordon_error *err)
{
    if (!work->error.code)
        work->error = *err;
    work->bound = 0;
    runs_cancel_from(&work->bench->runs, 0);
}

static void *worker(void *context)
{
    struct work *work = context;
    pthread_mutex_lock(&work->lock);
    while (work->next < work->bound) {
        size_t index = work->next++;
        struct verdict verdict;
        cordon_error err = {0};
        pthread_mutex_unlock(&work->lock);
        int code = case_run(work->bench, index, &verdict, &err);
        pthread_mutex_lock(&work->lock);
        if (code < 0)
            give_up(work, &err);
        else
            hand_in(work, &verdict);
    }
    work->working--;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

/* Signals are the calling program's to handle, in threads of its own. */
static unsigned start_workers(struct work *work, pthread_t *threads, unsigned count)
{
    sigset_t all, before;
    unsigned started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < count; started++)
        if (pthread_create(&threads[started], NULL, worker, work) != 0)
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static size_t shown_bytes(size_t count)
{
    size_t share = SHOWN_BYTES / (2 * count);
    return share > SHOWN_MOST ? SHOWN_MOST : share < SHOWN_LEAST ? SHOWN_LEAST : share;
}

/* Made from what is shown: a reason must not tell what a filter has taken out. */
static json_t *reason_json(const struct verdict *verdict, const struct spec_case *one, const cordon_filter *filter,
                           struct slice expected, struct slice got)
{
    auto_buf struct buf reason = {0};
    if (!strcmp(verdict->status, "passed"))
        return json_null();
    if (!verdict->is_compared)
        show_filter(filter, 0, (struct slice){buf_text(&verdict->message), verdict->message.length}, &reason);
    else if (compare_output(one->match, one->tolerance, expected, got, &reason))
        buf_puts(&reason, "differs from what was expected in a part that is redacted");
    return show_text((struct slice){buf_text(&reason), reason.length}, REASON_MOST);
}

static json_t *make_row(const struct bench *bench, const struct verdict *verdict, const cordon_filter *filter)
{
    const struct spec_case *one = &bench->spec->cases[verdict->index];
    auto_buf struct buf clean_expected = {0}, clean_got = {0};
    struct slice expected = one->expected, got = {"", 0};
    size_t most = shown_bytes(bench->spec->count);
    if (verdict->result)
        got.data = cordon_result_stdout(verdict->result, &got.length);
    if (filter) {
        show_filter(filter, 0, expected, &clean_expected);
        show_filter(filter, 1, got, &clean_got);
        if (clean_expected.failed || clean_got.failed)
            return NULL;
        expected = (struct slice){buf_text(&clean_expected), clean_expected.length};
        got = (struct slice){buf_text(&clean_got), clean_got.length};
    }
    auto_buf struct buf name = {0};
    show_filter(filter, 0, (struct slice){one->name, strlen(one->name)}, &name);
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "name",
                     show_text((struct slice){buf_text(&name), name.length}, SIZE_MAX), "status", verdict->status,
                     "expected", one->has_expected ? show_text(expected, most) : json_null(), "got",
                     verdict->result ? show_text(got, most) : json_null(), "usage",
                     verdict->result ? outcome_usage_json(&verdict->result->program) : json_null(), "reason",
                     reason_json(verdict, one, filter, expected, got));
}

/* The result that will stand for all: that of the first case that did not pass, or else of the last. */
static void keep_result(struct tally *tally, struct verdict *verdict, bool passed)
{
    bool better = passed ? tally->failing == SIZE_MAX && (!tally->result || verdict->index > tally->result_of)
                         : verdict->index <= tally->failing;
    if (!better)
        return;
    cordon_result_free(tally->result);
    tally->result = take_ptr(&verdict->result);
    tally->result_of = verdict->index;
}

/* Without the lock. */
static int take_in(struct work *work, const struct judge_options *options, struct verdict *verdict, struct tally *tally,
                   cordon_error *err)
{
    const struct spec *spec = work->bench->spec;
    bool passed = !strcmp(verdict->status, "passed");
    size_t index = verdict->index;
    bool is_beyond = spec->stop_at_failure && tally->failing != SIZE_MAX && index > tally->failing;
    if (is_beyond || (tally->is_cancelled && !strcmp(verdict->status, "cancelled")))
        return 0;
    json_t *row = make_row(work->bench, verdict, options->filter);
    if (!row)
        return error_nomem(err);
    tally->rows[index] = row;
    if (!passed && index < tally->failing)
        tally->failing = index;
    keep_result(tally, verdict, passed);
    if (options->on_case)
        options->on_case(options->context, index, spec->count, row);
    return 0;
}

/* The caller's function is called without the lock: the workers need not wait for it. */
static bool is_stopped(struct work *work, const struct judge_options *options)
{
    pthread_mutex_unlock(&work->lock);
    bool stopped = judge_is_stopped(options);
    pthread_mutex_lock(&work->lock);
    return stopped;
}

static void watch(struct work *work, const struct judge_options *options, struct tally *tally)
{
    if (!judge_can_stop(options)) {
        pthread_cond_wait(&work->changed, &work->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WATCH_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&work->changed, &work->lock, &until);
    if (!tally->is_cancelled && is_stopped(work, options)) {
        tally->is_cancelled = true;
        work->bound = 0;
        runs_cancel_from(&work->bench->runs, 0);
    }
}

/* Until every worker has left. */
static void gather(struct work *work, const struct judge_options *options, struct tally *tally)
{
    const struct spec *spec = work->bench->spec;
    pthread_mutex_lock(&work->lock);
    while (work->working || work->done_count) {
        if (!work->done_count) {
            watch(work, options, tally);
            continue;
        }
        struct verdict verdict = work->done[--work->done_count];
        cordon_error err = {0};
        pthread_cond_broadcast(&work->changed);
        pthread_mutex_unlock(&work->lock);
        int code = take_in(work, options, &verdict, tally, &err);
        verdict_free(&verdict);
        pthread_mutex_lock(&work->lock);
        if (code < 0)
            give_up(work, &err);
        if (spec->stop_at_failure && tally->failing != SIZE_MAX && tally->failing < work->bound) {
            work->bound = tally->failing + 1;
            runs_cancel_from(&work->bench->runs, tally->failing + 1);
        }
    }
    pthread_mutex_unlock(&work->lock);
}

static void count_rows(struct tally *tally, const struct spec *spec)
{
    for (size_t i = 0; i < tally->count; i++) {
        if (spec->stop_at_failure && tally->failing != SIZE_MAX && i > tally->failing && tally->rows[i]) {
            json_decref(tally->rows[i]);
            tally->rows[i] = NULL;
        }
        if (!tally->rows[i])
            tally->skipped++;
        else if (!strcmp(json_string_value(json_object_get(tally->rows[i], "status")), "passed"))
            tally->passed++;
        else
            tally->failed++;
    }
}

int cases_run(struct bench *bench, const struct judge_options *options, struct tally *tally, cordon_error *err)
{
    static const struct judge_options defaults = {0};
    options = options ? options : &defaults;
    unsigned parallel = options->parallel ? options->parallel : 1;
    if (parallel > CASES_PARALLEL_MAX)
        parallel = CASES_PARALLEL_MAX;
    if (parallel > bench->spec->count)
        parallel = (unsigned)bench->spec->count;
    pthread_t threads[CASES_PARALLEL_MAX];
    auto_free struct work *work = calloc(1, sizeof *work);
    *tally = (struct tally){.count = bench->spec->count, .failing = SIZE_MAX};
    tally->rows = calloc(tally->count, sizeof(void *));
    if (!tally->rows || !work) {
        tally_free(tally);
        return error_nomem(err);
    }
    *work = (struct work){.bench = bench, .bound = bench->spec->count, .working = parallel, .capacity = parallel};
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->changed, NULL);
    unsigned started = start_workers(work, threads, parallel);
    pthread_mutex_lock(&work->lock);
    work->working -= parallel - started;
    if (!started)
        error_sys(&work->error, EAGAIN, "judge", "cannot start a thread");
    pthread_mutex_unlock(&work->lock);
    gather(work, options, tally);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->lock);
    if (!work->error.code) {
        count_rows(tally, bench->spec);
        return 0;
    }
    if (err)
        *err = work->error;
    tally_free(tally);
    return work->error.code;
}

void tally_free(struct tally *tally)
{
    for (size_t i = 0; tally->rows && i < tally->count; i++)
        json_decref(tally->rows[i]);
    free(tally->rows);
    cordon_result_free(tally->result);
    *tally = (struct tally){0};
}
