/* A run: the compile step if the language has one, then the program, then the result. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cordon/run.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "engine/compile_step.h"
#include "engine/exchange.h"
#include "engine/prebuild.h"
#include "engine/result.h"
#include "engine/result_files.h"
#include "engine/run.h"
#include "engine/warm.h"
#include "output/json_text.h"
#include "output/value.h"

/* Results with less output are made at once, in the caller's thread. With a larger bound a daemon's loop is away for
 * longer; with a smaller one, more short runs pay for the way to another thread and back, about 50 us. */
#define SHORT_BYTES 65536

enum stage { STAGE_COMPILE, STAGE_PROGRAM, STAGE_DONE };

struct cordon_run {
    struct cordon_engine *engine;
    cordon_run_options options;
    struct prepared prepared;
    enum stage stage;
    struct prepared_step step;
    struct exchange exchange;
    struct collected made;      /* what the compile step left */
    const cordon_run *compiled; /* whose compile step it uses; NULL: its own */
    struct outcome *compile;    /* for those that use this one's, after the result was handed over */
    bool compile_only;
    struct compile_key key;
    bool is_private;  /* nobody else can cancel it or wait for it */
    bool quiet;       /* output is not taken before the end, or run_watch_output() */
    bool no_offer;    /* one was void */
    bool no_prebuilt; /* it could not be mounted */
    bool has_key;     /* the compile step may be looked up and kept */
    int epoll;        /* -1: nobody has needed it yet */
    int cancel;       /* eventfd, so that any thread or signal handler may ask */
    bool cancelled;
    struct cordon_result *result;
    struct account account;
    cordon_error failure;
};

/* As if nothing had been read: the program's source by the name in one of its messages. */
static const char *find_source(void *context, const char *file, size_t *length)
{
    const struct prepared *prepared = context;
    const cordon_request *request = prepared->request;
    if (!strncmp(file, "/work/", 6))
        file += 6;
    if (!strncmp(file, "./", 2))
        file += 2;
    if (request->has_code && !strcmp(file, prepared->manifest->file)) {
        *length = request->code.length;
        return request->code.data;
    }
    for (size_t i = 0; i < request->file_count; i++)
        if (!strcmp(request->files[i].path, file)) {
            *length = request->files[i].content.length;
            return request->files[i].content.data;
        }
    return NULL;
}

/* What the compile step left when it was made before, instead of making it. */
static bool find_compiled(cordon_run *run)
{
    run->has_key = !run->options.no_cache && compile_step_key(run->engine, &run->prepared, &run->step, &run->key) == 0;
    if (run->has_key)
        run->result->compile = compile_step_find(run->engine, &run->key, run->step.plan.limits, &run->made);
    return run->result->compile;
}

static int after_compile(cordon_run *run, cordon_error *err);

static int start_stage(cordon_run *run, cordon_error *err)
{
    bool compile = run->stage == STAGE_COMPILE;
    const cordon_request *request = run->prepared.request;
    const struct collected *made = run->compiled ? &run->compiled->made : &run->made;
    int code = prepare_step(&run->prepared, compile, compile ? NULL : made, &run->step, err);
    if (code < 0)
        return code;
    if (compile)
        code = prepare_command(&run->prepared, &run->step, err);
    if (code == 0 && compile && find_compiled(run)) {
        prepared_step_free(&run->step);
        return after_compile(run, err);
    }
    if (code == 0 && compile && !run->no_prebuilt && !run->options.no_cache)
        prepare_prebuilt(&run->prepared, &run->step, prebuild_open(run->engine, run->prepared.manifest));
    if (code == 0)
        code = warm_choose(run->engine, &run->prepared, compile, &run->step, err);
    if (code < 0) {
        prepared_step_free(&run->step);
        return code;
    }
    int64_t cap = run->step.plan.limits->value[LIMIT_OUTPUT_BYTES];
    struct exchange_input input = {.plan = &run->step.plan,
                                   .mount_fds = compile ? &run->step.prebuilt : run->prepared.mount_fds,
                                   .no_offer = run->no_offer,
                                   .files_read = compile || request->collect.count || run->step.plan.mount_count,
                                   .lazy = run->quiet,
                                   .filter = run->options.filter,
                                   .output_cap = cap == LIMIT_UNLIMITED ? SIZE_MAX : (size_t)cap,
                                   .stdin_fd = -1};
    if (!compile) {
        input.stop_on_output_limit = request->stop_on_output_limit;
        input.on_output = run->options.on_output;
        input.context = run->options.context;
        input.stdin_fd = run->options.stdin_fd;
        if (request->has_stdin) {
            input.stdin_bytes = request->stdin_bytes.data ? request->stdin_bytes.data : "";
            input.stdin_length = request->stdin_bytes.length;
        }
    }
    if (!exchange_take(&run->exchange, run->engine, run->epoll, &input)) {
        code = prepare_check(&run->prepared, &run->step, err);
        if (code == 0)
            code = exchange_order(&run->exchange, run->engine, run->epoll, &input, err);
    }
    if (code < 0)
        prepared_step_free(&run->step);
    else if (run->cancelled)
        exchange_command(&run->exchange, COMMAND_CANCEL);
    return code;
}

static int after_compile(cordon_run *run, cordon_error *err)
{
    run->stage = run->compile_only ? STAGE_DONE : STAGE_PROGRAM;
    return run->compile_only ? 0 : start_stage(run, err);
}

static void end_stage(cordon_run *run)
{
    exchange_close(&run->exchange);
    prepared_step_free(&run->step);
}

static int take_denials(const struct exchange *exchange, struct outcome *outcome)
{
    const struct event_ended *ended = &exchange->ended;
    outcome->denials = calloc(ended->denial_count + 1, sizeof *outcome->denials);
    if (!outcome->denials)
        return -1;
    outcome->denial_count = ended->denial_count;
    for (uint32_t i = 0; i < ended->denial_count; i++) {
        struct denial *denial = &outcome->denials[i];
        snprintf(denial->kind, sizeof denial->kind, "%s", exchange->denials[i].kind);
        snprintf(denial->what, sizeof denial->what, "%s", exchange->denials[i].what);
        snprintf(denial->hint, sizeof denial->hint, "%s", exchange->denials[i].hint);
        denial->count = exchange->denials[i].count;
    }
    return 0;
}

static int take_outcome(cordon_run *run, struct outcome *outcome)
{
    const struct event_ended *ended = &run->exchange.ended;
    *outcome = (struct outcome){.status = (cordon_status)ended->status,
                                .exit_code = ended->exit_code,
                                .signal = ended->signal,
                                .hits = ended->hits,
                                .controls = ended->controls,
                                .cgroup = ended->cgroup,
                                .uid = ended->uid,
                                .warmth = (enum warmth)ended->warm,
                                .usage = ended->usage,
                                .start_us = ended->start_us,
                                .run_us = ended->run_us,
                                .limits = *run->step.plan.limits};
    for (int i = 0; i < 2; i++) {
        const struct capture *capture = &run->exchange.streams[i].capture;
        outcome->out[i] = capture_text(capture, &outcome->out_length[i], &outcome->cut_at[i]);
        outcome->out_total[i] = run->exchange.streams[i].total;
        outcome->truncated[i] = capture_truncated(capture);
        if (!outcome->out[i])
            return -1;
    }
    uint64_t spent = clock_us() - run->exchange.sent_us;
    outcome->finish_us = spent > ended->start_us + ended->run_us ? spent - ended->start_us - ended->run_us : 0;
    return take_denials(&run->exchange, outcome);
}

static void append(void *sink, const void *bytes, size_t length)
{
    buf_append(sink, bytes, length);
}

/* The text as it is to be seen; takes it, and gives one to be freed. NULL when memory is out. */
static char *filter_text(const cordon_run *run, const char *what, char *text, size_t *length)
{
    const cordon_filter *filter = run->options.filter;
    if (!filter || !filter->text)
        return text;
    struct buf clean = {0};
    filter->text(filter->context, what, text, *length, append, &clean);
    buf_append(&clean, "", 0);
    free(text);
    *length = clean.length;
    if (clean.failed)
        buf_free(&clean);
    return clean.data;
}

/* A program may write any character of its value as an escape, which a reader decodes, so the filter sees the value as
 * it is written again. Takes the text. */
static char *show_value(const cordon_run *run, char *text, size_t *length)
{
    const cordon_filter *filter = run->options.filter;
    json_t *value = filter && filter->text ? value_parse(text, *length) : NULL;
    if (value) {
        free(text);
        text = json_text(value, length);
        json_decref(value);
    }
    return text ? filter_text(run, "value", text, length) : NULL;
}

static void analyse(cordon_run *run)
{
    struct cordon_result *result = run->result;
    const struct outcome *outcome = &result->program;
    struct explain_input input = {.manifest = run->prepared.manifest,
                                  .status = outcome->status,
                                  .signal = outcome->signal,
                                  .stderr_text = outcome->out[1],
                                  .stderr_length = outcome->out_length[1],
                                  .source = find_source,
                                  .context = &run->prepared,
                                  .denials = outcome->denials,
                                  .denial_count = outcome->denial_count,
                                  .reason = result->reason};
    if (outcome->status != CORDON_STATUS_OK)
        result->has_error = explain(&input, &result->error) > 0;
    /* What was printed went through the filter; the program's own text, which the analysis quotes, did not. */
    if (result->error.snippet) {
        size_t length = strlen(result->error.snippet);
        result->error.snippet = filter_text(run, "file", result->error.snippet, &length);
    }
    bool own_end = outcome->status == CORDON_STATUS_NONZERO_EXIT || outcome->status == CORDON_STATUS_SIGNALED;
    if (own_end && result->has_error && result->error.category && !strcmp(result->error.category, "memory"))
        reason_add_memory(&result->reason, outcome);
}

/* The compile step failed: its output is what the caller has to see. */
static int finish_without_program(cordon_run *run)
{
    struct cordon_result *result = run->result;
    struct outcome *compile = result->compile;
    struct outcome *program = &result->program;
    *program = *compile;
    program->denials = calloc(compile->denial_count + 1, sizeof *program->denials);
    for (int i = 0; i < 2; i++) {
        program->out[i] = malloc(compile->out_length[i] + 1);
        if (program->out[i])
            memcpy(program->out[i], compile->out[i], compile->out_length[i] + 1);
    }
    if (!program->denials || !program->out[0] || !program->out[1])
        return -1;
    memcpy(program->denials, compile->denials, compile->denial_count * sizeof *program->denials);
    result->reason = reason_text(compile, "the compile step ");
    if (compile->status != CORDON_STATUS_CANCELLED) {
        program->status = CORDON_STATUS_COMPILE_ERROR;
        program->exit_code = -1;
        program->signal = 0;
    }
    analyse(run);
    return 0;
}

static int finish_compile(cordon_run *run, cordon_error *err)
{
    struct cordon_result *result = run->result;
    const struct manifest *manifest = run->prepared.manifest;
    result->compile = calloc(1, sizeof *result->compile);
    if (!result->compile || take_outcome(run, result->compile) < 0)
        return error_nomem(err);
    int code = 0;
    bool built = result->compile->status == CORDON_STATUS_OK;
    account_cell(&run->account, result->compile, !built);
    if (built)
        code = collect_files(run->exchange.work_fd, (char *const *)manifest->compile->outputs,
                             manifest->compile->outputs_count, &run->made, err);
    end_stage(run);
    if (code < 0)
        return code;
    if (!built) {
        run->stage = STAGE_DONE;
        return finish_without_program(run) < 0 ? error_nomem(err) : 0;
    }
    code = after_compile(run, err);
    /* Kept while the program runs already. */
    if (code == 0 && run->has_key)
        compile_cache_keep(run->engine->compiled, &run->key, &run->made, result->compile);
    return code;
}

/* A write beyond file_bytes fails without a kernel event unless SIGXFSZ ends the program, and many runtimes ignore that
 * signal. The witness is a file in the work directory that is exactly as long as a file may be. */
static bool file_is_full(const cordon_run *run)
{
    const struct limits *limits = &run->result->program.limits;
    int64_t most = limits->value[LIMIT_FILE_BYTES];
    if (run->exchange.work_fd < 0 || most == LIMIT_UNLIMITED)
        return false;
    char *everything[] = {(char *)"*", (char *)"**/*"};
    struct collected found = {0};
    bool full = false;
    if (collect_files(run->exchange.work_fd, everything, ARRAY_LEN(everything), &found, NULL) < 0)
        return false;
    for (size_t i = 0; i < found.count; i++)
        full |= found.items[i].size == (uint64_t)most;
    collected_free(&found);
    return full;
}

static int finish_program(cordon_run *run, cordon_error *err)
{
    struct cordon_result *result = run->result;
    run->stage = STAGE_DONE;
    if (take_outcome(run, &result->program) < 0)
        return error_nomem(err);
    account_cell(&run->account, &result->program, true);
    bool stopped_writing = result->program.status == CORDON_STATUS_SIGNALED && result->program.signal == SIGXFSZ;
    if ((result->program.status == CORDON_STATUS_NONZERO_EXIT || stopped_writing) && file_is_full(run)) {
        result->program.status = CORDON_STATUS_DISK_LIMIT;
        result->program.hits |= HIT_FILE_BYTES;
    }
    /* A program that printed past the cap and left at once was not stopped, but it did not keep the limit either. */
    if (run->exchange.stop_sent && result->program.status <= CORDON_STATUS_SIGNALED)
        result->program.status = CORDON_STATUS_OUTPUT_LIMIT;
    result->reason = reason_text(&result->program, "");
    if (run->exchange.value.length && !run->exchange.value_too_long) {
        result->value_length = run->exchange.value.length;
        result->value = show_value(run, take_ptr(&run->exchange.value.data), &result->value_length);
    }
    result_collect(result, run->exchange.work_fd, run->prepared.request, &run->step, run->options.filter);
    end_stage(run);
    analyse(run);
    return 0;
}

static int open_epoll(cordon_run *run, cordon_error *err)
{
    if (run->epoll >= 0)
        return 0;
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!run->is_private)
        run->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = run->cancel};
    if (run->epoll < 0 ||
        (!run->is_private && (run->cancel < 0 || epoll_ctl(run->epoll, EPOLL_CTL_ADD, run->cancel, &event) < 0)))
        return error_sys(err, errno, "run", "cannot set up the run");
    return 0;
}

/* Its end is all that is waited for, at first. */
static bool waits_for_one(const cordon_run *run)
{
    return run->is_private && run->quiet && run->options.stdin_fd < 0 && !run->prepared.request->has_stdin;
}

static int set_up(cordon_run *run, cordon_error *err)
{
    int code = waits_for_one(run) ? 0 : open_epoll(run, err);
    if (code < 0)
        return code;
    run->result = result_new(run->engine, &run->prepared, &run->options);
    if (!run->result)
        return error_nomem(err);
    run->stage = run->prepared.manifest->compile && !run->compiled ? STAGE_COMPILE : STAGE_PROGRAM;
    if (run->compiled && !(run->result->compile = compile_step_again(run->compiled->compile)))
        return error_nomem(err);
    if (run->compile_only && run->stage != STAGE_COMPILE)
        return error_set(err, CORDON_ESTATE, "compile", "%s is not compiled", run->prepared.manifest->name);
    return start_stage(run, err);
}

/* What sets one run apart from another of the same request. */
struct manner {
    bool is_private, quiet, compile_only;
    const cordon_run *compiled;
};

static int start(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                 struct manner manner, cordon_run **out, cordon_error *err)
{
    const cordon_run_options defaults = CORDON_RUN_OPTIONS_INIT;
    if (options && options->struct_size < sizeof defaults)
        return error_set(err, CORDON_EINVAL, "run", "struct_size of the options is %zu, expected %zu",
                         options->struct_size, sizeof defaults);
    if (!(options && options->filter)) {
        int refused = prepare_unfiltered(request, err);
        if (refused)
            return refused;
    }
    if (request->tests) {
        error_field(err, "/tests", "a plain run does not judge tests");
        return error_hint(err, "use cordon_judge(), `cordon test`, `cordon batch` or /v1/tests, or leave tests out");
    }
    cordon_run *run = calloc(1, sizeof *run);
    if (!run)
        return error_nomem(err);
    run->engine = engine_ref(engine);
    run->options = options ? *options : defaults;
    run->account.queue_us = run->options.queue_us;
    run->epoll = run->cancel = run->step.prebuilt = -1;
    run->is_private = manner.is_private;
    run->quiet = manner.quiet;
    run->compile_only = manner.compile_only;
    run->compiled = manner.compiled;
    run->stage = STAGE_DONE;
    int code = prepare(engine, request, &run->prepared, err);
    if (code < 0) {
        engine_unref(engine);
        free(run);
        return code;
    }
    code = set_up(run, err);
    if (code < 0) {
        run->stage = STAGE_DONE;
        cordon_run_free(run);
        return code;
    }
    *out = run;
    return 0;
}

int cordon_run_start(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                     cordon_run **out, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(request, err);
    if (!out)
        return error_null(err, "run");
    return start(engine, request, options, (struct manner){0}, out, err);
}

int run_compile(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                cordon_run **out, cordon_error *err)
{
    return start(engine, request, options, (struct manner){.compile_only = true}, out, err);
}

int run_start_compiled(const cordon_run *compiled, const cordon_request *request, const cordon_run_options *options,
                       cordon_run **out, cordon_error *err)
{
    return start(compiled->engine, request, options, (struct manner){.compiled = compiled}, out, err);
}

int run_start_quietly(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                      cordon_run **out, cordon_error *err)
{
    return start(engine, request, options, (struct manner){.quiet = true}, out, err);
}

const struct account *run_account(const cordon_run *run)
{
    return &run->account;
}

void run_watch_output(cordon_run *run)
{
    run->quiet = false;
    if (run->stage != STAGE_DONE)
        exchange_watch_output(&run->exchange, run->epoll);
}

int cordon_run_fd(const cordon_run *run)
{
    return run ? run->epoll : -1;
}

static void check_cancel(cordon_run *run)
{
    uint64_t count;
    if (run->cancel >= 0 && read(run->cancel, &count, sizeof count) == sizeof count) {
        run->cancelled = true;
        exchange_command(&run->exchange, COMMAND_CANCEL);
    }
}

static int fail(cordon_run *run, int code, cordon_error *err)
{
    run->stage = STAGE_DONE;
    cordon_result_free(run->result);
    run->result = NULL;
    if (err && &run->failure != err)
        run->failure = *err;
    run->failure.code = code;
    return code;
}

/* Whether what follows a cell's end may take longer than a loop may be away: files are read and hashed, output is
 * copied and encoded, messages are searched, or a version has to be asked for in a cell. */
static bool is_long(const cordon_run *run)
{
    const struct exchange *exchange = &run->exchange;
    if (exchange->state != EXCHANGE_ENDED)
        return false;
    return run->stage == STAGE_COMPILE || exchange->ended.status != CORDON_STATUS_OK ||
           run->prepared.request->collect.count ||
           exchange->streams[0].total + exchange->streams[1].total + exchange->value.length > SHORT_BYTES ||
           !version_is_known(run->engine, run->prepared.manifest);
}

int run_dispatch(cordon_run *run, cordon_error *err)
{
    if (run->failure.code) {
        *err = run->failure;
        return err->code;
    }
    if (run->stage == STAGE_DONE)
        return 1;
    check_cancel(run);
    if (exchange_dispatch(&run->exchange) == EXCHANGE_RUNNING)
        return 0;
    return is_long(run) ? RUN_LONG : run_advance(run, err);
}

int cordon_run_dispatch(cordon_run *run, cordon_error *err)
{
    REQUIRE(run, err);
    cordon_error local;
    if (!err)
        err = &local;
    int code = run_dispatch(run, err);
    return code == RUN_LONG ? run_advance(run, err) : code;
}

int run_advance(cordon_run *run, cordon_error *err)
{
    enum exchange_state state = run->exchange.state;
    int code;
    bool unmountable = state == EXCHANGE_FAILED && run->step.prebuilt >= 0 && !run->no_prebuilt;
    if (state == EXCHANGE_VOID || unmountable) {
        end_stage(run);
        run->no_offer |= state == EXCHANGE_VOID;
        run->no_prebuilt |= unmountable;
        code = start_stage(run, err);
    } else if (state == EXCHANGE_ENDED)
        code = run->stage == STAGE_COMPILE ? finish_compile(run, err) : finish_program(run, err);
    else {
        code = exchange_error(&run->exchange, &run->step.plan, err);
        end_stage(run);
    }
    if (code < 0)
        return fail(run, code, err);
    return run->stage == STAGE_DONE;
}

int cordon_run_wait(cordon_run *run, cordon_result **result, cordon_error *err)
{
    REQUIRE(run, err);
    REQUIRE(result, err);
    int code;
    while ((code = cordon_run_dispatch(run, err)) == 0) {
        struct pollfd ready = {.fd = run->epoll >= 0 ? run->epoll : run->exchange.talk, .events = POLLIN};
        /* The output of a quiet run need not be looked after before its program runs. */
        if (poll(&ready, 1, run->quiet && run->exchange.started ? RUN_QUIET_MS : -1) != 0)
            continue;
        code = open_epoll(run, err);
        if (code < 0) {
            end_stage(run);
            return fail(run, code, err);
        }
        run_watch_output(run);
    }
    if (code < 0)
        return code;
    if (!run->result)
        return error_set(err, CORDON_ESTATE, "run", "the result was taken already");
    if (run->compile_only && run->result->compile && !(run->compile = compile_step_again(run->result->compile)))
        return error_nomem(err);
    run->result->account = run->account;
    *result = take_ptr(&run->result);
    return 0;
}

void cordon_run_cancel(cordon_run *run)
{
    uint64_t one = 1;
    if (!run)
        return;
    (void)!write(run->cancel, &one, sizeof one);
}

void cordon_run_free(cordon_run *run)
{
    if (!run)
        return;
    if (run->stage != STAGE_DONE)
        end_stage(run);
    collected_free(&run->made);
    if (run->compile)
        outcome_free(run->compile);
    free(run->compile);
    cordon_result_free(run->result);
    prepared_free(&run->prepared);
    cleanup_close(&run->epoll);
    cleanup_close(&run->cancel);
    engine_unref(run->engine);
    free(run);
}

int cordon_execute(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                   cordon_result **result, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(request, err);
    REQUIRE(result, err);
    cordon_run *run = NULL;
    struct manner manner = {.is_private = true, .quiet = !(options && options->on_output)};
    int code = start(engine, request, options, manner, &run, err);
    if (code < 0)
        return code;
    code = cordon_run_wait(run, result, err);
    cordon_run_free(run);
    return code;
}
