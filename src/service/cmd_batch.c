/* `cordon batch`: many requests out of a file, a result line for each. Workers take lines in turn; the main thread
 * shows how it goes and watches for an interrupt. Called by main(). */
#include <cordon/cordon.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/engine.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/result_json.h"
#include "judge/judge.h"
#include "judge/runs.h"
#include "plan/request_json.h"
#include "service/batch_input.h"
#include "service/batch_output.h"
#include "service/batch_show.h"
#include "service/commands.h"
#include "service/interrupt.h"
#include "service/sanitizer.h"
#include "service/test_flags.h"

#define PARALLEL_MAX 256
#define LOOK_MS      100
/* What runs when somebody interrupts has so long to end by itself. */
#define GRACE_US 1000000

struct batch {
    const char *output_path;
    unsigned parallel;
    bool retry, json, quiet;
    struct batch_input input;
    cordon_engine *engine;
    struct batch_output output;
    struct batch_counts counts;
    struct runs runs;
    atomic_bool cancel; /* for the judges */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char prebuilt[32]; /* the language whose compiler was last seen to; under the lock, as all below */
    bool is_over;
    unsigned working;
    cordon_error error; /* that ended everything */
};

/* Counts what an earlier batch did; whether that is all there is to do. Under the lock. */
static bool is_done(struct batch *batch, const struct task *task, cordon_error *err)
{
    enum batch_before found;
    if (batch_output_find(&batch->output, task, &found, err) < 0)
        return false;
    batch->counts.before += found == BEFORE_GOOD || found == BEFORE_FAILED;
    batch->counts.failed_before += found == BEFORE_FAILED;
    batch->counts.changed += found == BEFORE_CHANGED;
    return found == BEFORE_GOOD || found == BEFORE_FAILED;
}

/* The next that has no result yet; false at the end. Under the lock. */
static bool next_task(struct batch *batch, struct task *task)
{
    cordon_error err = {0};
    while (!batch->is_over && !atomic_load(&interrupted)) {
        int got = batch_input_next(&batch->input, task, &err);
        bool is_done_before = got > 0 && is_done(batch, task, &err);
        if (got > 0 && !is_done_before && !err.code)
            return true;
        if (got > 0)
            task_free(task);
        if (got <= 0 || err.code) {
            batch->is_over = true;
            batch->error = err.code && !batch->error.code ? err : batch->error;
        }
    }
    return false;
}

static int run_plain(struct batch *batch, const cordon_request *request, const struct sanitizer *sanitizer,
                     json_t **answer, cordon_error *err)
{
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    cordon_run *run = NULL;
    cordon_result *result = NULL;
    options.filter = sanitizer_filter(sanitizer);
    int code = cordon_run_start(batch->engine, request, &options, &run, err);
    if (code == 0)
        code = runs_wait(&batch->runs, 0, run, &result, err);
    if (code == 0)
        sanitizer_tell(sanitizer, result);
    if (code == 0) {
        *answer = result_object(result);
        code = *answer ? 0 : error_nomem(err);
    }
    cordon_result_free(result);
    cordon_run_free(run);
    return code;
}

static int run_tests(struct batch *batch, const json_t *request, const struct sanitizer *sanitizer, json_t **answer,
                     cordon_error *err)
{
    struct judge_options options = {.parallel = 1, .cancel = &batch->cancel, .filter = sanitizer_filter(sanitizer)};
    int code = judge_run(batch->engine, request, &options, answer, err);
    if (code == 0)
        json_object_set_new(*answer, "redactions", redactor_counts_json(sanitizer->redactor));
    return code;
}

/* Has what the compiler needs made by the first who comes to the language; others go on without meanwhile. */
static void prebuild(struct batch *batch, const json_t *request)
{
    const char *language = member_text(request, "language");
    pthread_mutex_lock(&batch->lock);
    bool is_first = language && strcmp(batch->prebuilt, language) != 0;
    if (is_first)
        snprintf(batch->prebuilt, sizeof batch->prebuilt, "%s", language);
    pthread_mutex_unlock(&batch->lock);
    if (is_first)
        input_prebuild(batch->engine, language, batch->quiet, interrupt_is_absent);
}

static int run_task(struct batch *batch, const struct task *task, json_t **answer, cordon_error *err)
{
    cordon_request *request = NULL;
    struct sanitizer sanitizer = {0};
    if (!task->request) {
        *err = task->error;
        return err->code;
    }
    int code = request_from_object(task->request, &request, err);
    if (code == 0)
        prebuild(batch, task->request);
    if (code == 0)
        code = sanitizer_open(&sanitizer, request, SANITIZE_NONE, err);
    if (code == 0)
        code = json_object_get(task->request, "tests") ? run_tests(batch, task->request, &sanitizer, answer, err)
                                                       : run_plain(batch, request, &sanitizer, answer, err);
    sanitizer_close(&sanitizer);
    cordon_request_free(request);
    return code;
}

static bool is_cancelled(const json_t *result)
{
    const char *status = member_text(result, "status");
    return status && !strcmp(status, "cancelled");
}

static void give_up(struct batch *batch, const cordon_error *err)
{
    pthread_mutex_lock(&batch->lock);
    if (!batch->error.code)
        batch->error = *err;
    batch->is_over = true;
    pthread_mutex_unlock(&batch->lock);
}

/* A result without an id of its own tells that its id is only the number of its line: another may have that number for
 * an id. */
static void name_result(json_t *result, const struct task *task)
{
    json_object_set(result, "id", task->id);
    if (task->line)
        json_object_set_new(result, "line", json_integer((json_int_t)task->line));
    json_object_set_new(result, "request_sha256", json_string(task->hash));
}

/* A result that was never written is made again when the batch goes on: so what an interrupt cut short, and what a
 * dead warden did not run, leaves no line. */
static void do_task(struct batch *batch, struct task *task)
{
    cordon_error err = {0};
    auto_json json_t *result = NULL;
    int code = run_task(batch, task, &result, &err);
    if (code == CORDON_EGONE || code == CORDON_ENOMEM) {
        give_up(batch, &err);
        return;
    }
    if (code < 0)
        result = report_object(&err);
    if (atomic_load(&interrupted) && is_cancelled(result))
        return;
    name_result(result, task);
    code = result ? batch_output_add(&batch->output, result, &err) : error_nomem(&err);
    if (code < 0) {
        give_up(batch, &err);
        return;
    }
    pthread_mutex_lock(&batch->lock);
    batch_count(&batch->counts, result);
    pthread_mutex_unlock(&batch->lock);
}

static void *worker(void *context)
{
    struct batch *batch = context;
    struct task task;
    pthread_mutex_lock(&batch->lock);
    while (next_task(batch, &task)) {
        pthread_mutex_unlock(&batch->lock);
        do_task(batch, &task);
        task_free(&task);
        pthread_mutex_lock(&batch->lock);
    }
    batch->working--;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

static void look(struct batch *batch, bool has_bar, uint64_t *stop_us)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&batch->changed, &batch->lock, &until);
    if (has_bar)
        batch_show_bar(&batch->counts);
    if (!atomic_load(&interrupted))
        return;
    *stop_us = *stop_us ? *stop_us : clock_us() + GRACE_US;
    if (clock_us() < *stop_us)
        return;
    atomic_store(&batch->cancel, true);
    runs_cancel_from(&batch->runs, 0);
}

static int run_workers(struct batch *batch)
{
    pthread_t threads[PARALLEL_MAX];
    unsigned started = 0;
    bool has_bar = !batch->json && !batch->quiet && isatty(STDERR_FILENO);
    uint64_t stop_us = 0;
    sigset_t all, before;
    batch->working = batch->parallel;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < batch->parallel; started++)
        if (pthread_create(&threads[started], NULL, worker, batch) != 0)
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&batch->lock);
    batch->working -= batch->parallel - started;
    if (!started)
        error_sys(&batch->error, EAGAIN, "batch", "cannot start a thread");
    while (batch->working)
        look(batch, has_bar, &stop_us);
    pthread_mutex_unlock(&batch->lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (has_bar)
        batch_clear_bar();
    return batch->error.code;
}

static int on_output(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row, (void)err;
    ((struct batch *)context)->output_path = value;
    return 0;
}

static int on_parallel(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    return test_flags_number(value, &((struct batch *)context)->parallel, err);
}

static int on_retry(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct batch *)context)->retry, row, value, err);
}

static int on_json(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct batch *)context)->json, row, value, err);
}

static int on_quiet(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct batch *)context)->quiet, row, value, err);
}

static const struct option_row rows[] = {
    {"output", 'o', "FILE",
     "where results go, a line each ('-' is standard output);\nrequests whose result is in it are not run again",
     on_output, NULL},
    {"parallel", 'p', "N", "requests at a time; by default as many as processors", on_parallel, NULL},
    {"retry-failed", 0, NULL, "run again what did not go well, in place of its result", on_retry, NULL},
    {"json", 0, NULL, "print the summary as one object", on_json, NULL},
    {"quiet", 'q', NULL, "no progress bar and no summary", on_quiet, NULL},
};

static const struct usage usage = {
    .synopsis = "cordon batch [OPTION...] REQUESTS -o RESULTS",
    .about = "Runs the requests of a file, one JSON object a line, each with an optional id and optional\n"
             "tests, and writes a result line for each, in whatever order they end. REQUESTS '-' is\n"
             "standard input. The same command goes on where an earlier one was interrupted, and runs again\n"
             "what was changed since.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .anywhere = true,
    .closing = "The exit code is 0 when all went well, 1 when not, 2 for bad usage, 125 for a failure of\n"
               "Cordon, 130 when it was interrupted.\n"
               "\n"
               "  cordon batch tasks.jsonl -o results.jsonl",
};

static int read_command_line(struct batch *batch, int argc, char **argv, const char **path, cordon_error *err)
{
    int first = 0;
    int code = options_parse(&usage, argc, argv, batch, &first, err);
    if (code)
        return code;
    if (first >= argc) {
        error_set(err, CORDON_EINVAL, "usage", "there are no requests");
        return error_hint(err, "name their file, or '-' for standard input");
    }
    *path = argv[first];
    code = options_no_words(argc, argv, first + 1, err);
    if (code == 0 && !batch->output_path) {
        error_set(err, CORDON_EINVAL, "usage", "results have nowhere to go");
        code = error_hint(err, "name a file with -o");
    }
    return code;
}

static unsigned processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static int open_all(struct batch *batch, const char *path, cordon_error *err)
{
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    options.warm = 1;
    int code = batch_input_open(&batch->input, path, &batch->counts.total, err);
    if (code == 0)
        code = batch_output_open(&batch->output, batch->output_path, batch->retry, err);
    if (code < 0)
        return code;
    if (batch->output.unhashed)
        terminal_say("warning: %zu results in %s have no request_sha256, which tells what they are the results of; "
                     "these requests run again",
                     batch->output.unhashed, batch->output.path);
    return cli_engine_open(&options, &batch->engine, err);
}

/* Where the results are on standard output, the summary is not. */
static int show(struct batch *batch)
{
    bool is_taken = !strcmp(batch->output_path, "-");
    if (batch->json) {
        auto_json json_t *summary = batch_summary(&batch->counts);
        auto_free char *text = json_dumps(summary, JSON_COMPACT | JSON_REAL_PRECISION(6));
        if (text && is_taken)
            return fprintf(stderr, "%s\n", text) < 0 ? EXIT_OWN_FAILURE : 0;
        return text ? report_json_text(text) : EXIT_OWN_FAILURE;
    }
    if (!batch->quiet)
        batch_show_table(is_taken ? stderr : stdout, &batch->counts);
    return 0;
}

static int finish(struct batch *batch)
{
    int shown = show(batch);
    if (shown)
        return shown;
    if (atomic_load(&interrupted)) {
        terminal_say("interrupted; the same command goes on from here");
        return EXIT_INTERRUPTED;
    }
    return batch->counts.good == batch->counts.done && !batch->counts.failed_before ? 0 : 1;
}

static void close_all(struct batch *batch)
{
    cordon_engine_close(batch->engine);
    if (batch->output.before)
        batch_output_close(&batch->output);
    batch_input_close(&batch->input);
    batch_counts_free(&batch->counts);
}

int cmd_batch(int argc, char **argv)
{
    cordon_error err = {0};
    const char *path = NULL;
    struct batch batch = {.parallel = processors(), .counts.begin_us = clock_us()};
    int code = read_command_line(&batch, argc, argv, &path, &err);
    if (code)
        return code == OPTIONS_HELP ? 0 : report_usage(&err, "batch");
    runs_open(&batch.runs);
    pthread_mutex_init(&batch.lock, NULL);
    pthread_cond_init(&batch.changed, NULL);
    interrupt_catch();
    code = open_all(&batch, path, &err);
    if (code == 0) {
        code = run_workers(&batch);
        err = batch.error;
        if (code == 0)
            code = batch_output_settle(&batch.output, &err);
    }
    int exit_code = code < 0 ? report_error(&err, batch.json) : finish(&batch);
    close_all(&batch);
    return exit_code;
}
