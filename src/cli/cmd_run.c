/* `cordon run`: one program, its output passed through, its exit code taken over. Owns the signals of the process while
 * a run is on. Verdicts and wording of why a program ended are the library's. Called by main(). */
#include <cordon/cordon.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/outdir.h"
#include "cli/report.h"
#include "cli/run_flags.h"
#include "cli/run_hooks.h"
#include "cli/terminal.h"
#include "cli/warden.h"

/* For the signal handler: the run to cancel, and how often somebody asked. */
static cordon_run *_Atomic current_run;
static volatile sig_atomic_t interrupts;

static void on_signal(int number)
{
    int saved = errno;
    (void)number;
    /* The warden sees the closed socket and kills the cell. */
    if (interrupts++)
        _exit(EXIT_INTERRUPTED);
    cordon_run *run = current_run;
    if (run)
        cordon_run_cancel(run);
    errno = saved;
}

/* Without SA_RESTART: a write to a reader that never reads must end when somebody presses Ctrl-C. A signal that the
 * caller ignores (nohup, a shell's background job) stays ignored. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

#define WARM_PATIENCE_MS 60000
/* Files that were not collected and are named on standard error; a result names more. */
#define SKIPPED_TOLD 10

/* What became of the streams that the program's output is passed to. */
struct relay {
    size_t passed[3]; /* by descriptor: bytes that came while the program ran */
    bool closed[3];   /* nobody reads any more */
    int failed;       /* errno of a failure of standard output that is worth telling, or 0 */
    char last[3];     /* last byte written */
    int latest;       /* descriptor written last */
};

static void relay_write(struct relay *relay, int stream, const void *bytes, size_t length)
{
    if (!length || relay->closed[stream])
        return;
    int code = terminal_write(stream, bytes, length, &interrupts);
    if (code == 0) {
        relay->last[stream] = ((const char *)bytes)[length - 1];
        relay->latest = stream;
        return;
    }
    relay->closed[stream] = true;
    /* A lost standard error alone does not end a program. */
    if (code == -EINTR || stream != STDOUT_FILENO)
        return;
    if (code != -EPIPE)
        relay->failed = -code;
    /* Nobody gets the output: stop, as SIGPIPE would. */
    if (current_run)
        cordon_run_cancel(current_run);
}

static void on_output(void *context, int stream, const void *bytes, size_t length)
{
    struct relay *relay = context;
    relay_write(relay, stream, bytes, length);
    relay->passed[stream] += length;
}

/* What the result holds beyond what came while the program ran: the marker and the tail of cut output, or everything a
 * compiler said. */
static void relay_rest(struct relay *relay, const cordon_result *result)
{
    size_t length;
    const char *text = cordon_result_stdout(result, &length);
    if (length > relay->passed[STDOUT_FILENO])
        relay_write(relay, STDOUT_FILENO, text + relay->passed[STDOUT_FILENO], length - relay->passed[STDOUT_FILENO]);
    text = cordon_result_stderr(result, &length);
    if (length > relay->passed[STDERR_FILENO])
        relay_write(relay, STDERR_FILENO, text + relay->passed[STDERR_FILENO], length - relay->passed[STDERR_FILENO]);
}

/* Cordon's line begins in the first column although the program did not end its own. */
static void end_line(const struct relay *relay)
{
    bool shared = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
    char last = relay->last[shared && relay->latest ? relay->latest : STDERR_FILENO];
    if (last && last != '\n')
        terminal_write(STDERR_FILENO, "\n", 1, NULL);
}

static void tell_denials(const json_t *result)
{
    size_t index;
    const json_t *denial;
    json_array_foreach(json_object_get(result, "denials"), index, denial)
    {
        const char *what = member_text(denial, "what"), *hint = member_text(denial, "hint");
        json_int_t count = json_integer_value(json_object_get(denial, "count"));
        auto_buf struct buf line = {0};
        buf_puts(&line, what ? what : "a call");
        if (count > 1)
            buf_printf(&line, ", %lld times", (long long)count);
        if (hint && *hint)
            buf_printf(&line, ": %s", hint);
        terminal_say("refused: %s", buf_text(&line));
    }
}

static void tell_skipped(const json_t *result)
{
    const json_t *skipped = json_object_get(result, "files_skipped");
    json_int_t count = json_integer_value(json_object_get(skipped, "count"));
    size_t index;
    const json_t *item;
    json_array_foreach(json_object_get(skipped, "items"), index, item)
    {
        if (index == SKIPPED_TOLD)
            break;
        const char *path = member_text(item, "path"), *why = member_text(item, "why");
        terminal_say("not collected: %s: %s", path ? path : "", why ? why : "");
    }
    if (count > SKIPPED_TOLD)
        terminal_say("not collected: %lld more; --json names up to 100", (long long)count - SKIPPED_TOLD);
}

/* What to do about a failure, by the analysis of the program's messages; NULL when there is nothing to say, or when the
 * failure comes of refused calls, whose lines say it. */
static const char *find_hint(const json_t *result)
{
    const json_t *error = json_object_get(result, "error");
    const char *hint = member_text(error, "hint"), *category = member_text(error, "category");
    bool refused = category && (!strcmp(category, "permission") || !strcmp(category, "network"));
    if (!hint || (refused && json_array_size(json_object_get(result, "denials"))))
        return NULL;
    return hint;
}

static void tell_line(const char *what, const char *text)
{
    auto_buf struct buf line = {0};
    run_flags_put_reason(&line, text);
    terminal_say("%s%s%s", what ? what : "", what ? ": " : "", buf_text(&line));
}

static void tell_why(const struct relay *relay, cordon_result *result, const json_t *json)
{
    cordon_status status = cordon_result_status(result);
    const char *hint = find_hint(json), *reason = cordon_result_reason(result);
    /* A program that exits with a code of its own has said itself why. */
    bool own_end = status == CORDON_STATUS_NONZERO_EXIT;
    if (status == CORDON_STATUS_OK || (own_end && !hint && !json_array_size(json_object_get(json, "denials"))))
        return;
    end_line(relay);
    tell_denials(json);
    /* "signaled: ended by signal 11" would say it twice. */
    if (!own_end)
        tell_line(status == CORDON_STATUS_SIGNALED ? NULL : cordon_status_name(status),
                  reason ? reason : "no reason was given");
    /* The reason of a limit has said what to change. */
    if (hint && (own_end || !reason || !strstr(reason, "limits.")))
        tell_line("hint", hint);
}

/* Where the program comes from: -c, FILE or '-'. Leaves the arguments that are its own at argv[*next]. */
static int take_program(struct run_flags *flags, int argc, char **argv, int first, int *next, cordon_error *err)
{
    bool after_dashes = first > 1 && !strcmp(argv[first - 1], "--");
    const char *file = first < argc ? argv[first] : NULL;
    *next = first;
    if (flags->code) {
        if (!file || after_dashes)
            return 0;
        error_set(err, CORDON_EINVAL, "usage", "both -c and the file '%s' were given", file);
        return error_hint(err, "arguments for the code go after --");
    }
    if (!file) {
        error_set(err, CORDON_EINVAL, "usage", "nothing to run");
        return error_hint(err, "name a file, or give -l LANGUAGE -c CODE");
    }
    *next = first + 1;
    auto_buf struct buf content = {0};
    bool from_stdin = !strcmp(file, "-"), regular = false;
    int code = from_stdin ? input_read_stdin(&content, err) : input_read_file(file, &content, &regular, err);
    if (code < 0)
        return code;
    /* A pipe has no name that means anything inside the cell. */
    if (!regular) {
        if (!content.length)
            return error_set(err, CORDON_EINVAL, "usage", "the program read from %s is empty",
                             from_stdin ? "standard input" : file);
        return cordon_request_set_code(flags->request, buf_text(&content), content.length, err);
    }
    code = cordon_request_add_file(flags->request, input_base_name(file), buf_text(&content), content.length, err);
    return code < 0 ? code : cordon_request_set_entry(flags->request, input_base_name(file), err);
}

/* What only shows when all options are known. */
static int check_flags(const struct run_flags *flags, const char *file, cordon_error *err)
{
    if (!flags->language && (!file || !strcmp(file, "-"))) {
        error_set(err, CORDON_EINVAL, "usage", "%s needs a language", file ? "a program from standard input" : "-c");
        return error_hint(err, "name it with -l; 'cordon languages' lists them");
    }
    if (flags->output_dir && !flags->has_collect) {
        error_set(err, CORDON_EINVAL, "usage", "--output-dir has nothing to write");
        return error_hint(err, "say which files with --collect GLOB");
    }
    if (flags->collect_all && !flags->has_collect) {
        error_set(err, CORDON_EINVAL, "usage", "--collect-all has nothing to collect");
        return error_hint(err, "say which files with --collect GLOB");
    }
    if (flags->has_collect && !flags->output_dir && !flags->json) {
        error_set(err, CORDON_EINVAL, "usage", "--collect has nowhere to put files");
        return error_hint(err, "add --output-dir DIR or --json");
    }
    return 0;
}

/* -1 where there is nothing left to read, or where reading would stop this process: a terminal of which it is not in
 * the foreground. */
static int stdin_for_program(const struct run_flags *flags, bool used_up)
{
    if (flags->has_stdin || used_up)
        return -1;
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp())
        return -1;
    return STDIN_FILENO;
}

static int run_to_end(cordon_engine *engine, const struct run_flags *flags, const cordon_run_options *options,
                      cordon_result **result, cordon_error *err)
{
    cordon_run *run = NULL;
    int code = cordon_run_start(engine, flags->request, options, &run, err);
    if (code < 0)
        return code;
    current_run = run;
    if (interrupts)
        cordon_run_cancel(run);
    code = cordon_run_wait(run, result, err);
    current_run = NULL;
    cordon_run_free(run);
    return code;
}

static int save_files(int output_dir, const json_t *json, cordon_error *err)
{
    return output_dir < 0 ? 0 : outdir_write(output_dir, json_object_get(json, "files"), err);
}

/* Everything after the end: tails, files, the reason, the exit code. */
static int finish(const struct run_flags *flags, struct relay *relay, int output_dir, cordon_result *result)
{
    cordon_error err;
    const char *text = NULL;
    bool need_json = flags->json || output_dir >= 0 || cordon_result_status(result) != CORDON_STATUS_OK;
    if (need_json && !(text = cordon_result_json(result))) {
        error_nomem(&err);
        return report_error(&err, false);
    }
    auto_json json_t *json = text && (!flags->json || output_dir >= 0) ? report_parse(text) : NULL;
    bool saved = save_files(output_dir, json, &err) == 0;
    int exit_code = cordon_result_process_exit_code(result);
    if (flags->json) {
        int written = report_json_text(text);
        if (written)
            return written;
    } else {
        relay_rest(relay, result);
        if (relay->failed) {
            error_sys(&err, relay->failed, "output", "passing the program's output on");
            return report_error(&err, false);
        }
        if (relay->closed[STDOUT_FILENO] && !interrupts)
            return EXIT_PIPE_CLOSED;
        if (!flags->quiet) {
            tell_skipped(json);
            tell_why(relay, result, json);
        }
    }
    return saved ? exit_code : report_error(&err, false);
}

static void cleanup_engine(cordon_engine **engine)
{
    cordon_engine_close(*engine);
}

static void cleanup_result(cordon_result **result)
{
    cordon_result_free(*result);
}

static void cleanup_flags(struct run_flags *flags)
{
    cordon_request_free(flags->request);
}

/* What stands after FILE is the program's, also where it has the name of an option of ours. */
static void warn_of_options(int argc, char **argv, int next, const char *file)
{
    for (; next < argc && strcmp(argv[next], "--") != 0; next++)
        if (options_find(&run_usage, argv[next])) {
            terminal_say(
                "warning: %s after %s goes to the program, not to Cordon (put it before %s; if it is meant for the "
                "program, write -- before %s)",
                argv[next], file, file, file);
            return;
        }
}

/* From words to a request that lacks at most its language. */
static int read_command_line(struct run_flags *flags, int argc, char **argv, const char **file, cordon_error *err)
{
    int first = 0, next = 0;
    int code = options_parse(&run_usage, argc, argv, flags, &first, err);
    if (code)
        return code;
    *file = !flags->code && first < argc ? argv[first] : NULL;
    if (*file || flags->code)
        code = check_flags(flags, *file, err);
    if (code == 0)
        code = take_program(flags, argc, argv, first, &next, err);
    if (code == 0 && *file && !flags->quiet && strcmp(argv[first - 1], "--") != 0)
        warn_of_options(argc, argv, next, *file);
    for (; code == 0 && next < argc; next++)
        code = cordon_request_add_arg(flags->request, argv[next], err);
    return code;
}

static int is_not_interrupted(void *context)
{
    (void)context;
    return !interrupts;
}

/* The one that was given, or the file's; and what its compiler needs is there. */
static int settle_language(cordon_engine *engine, const struct run_flags *flags, const char *file, cordon_error *err)
{
    auto_free char *id = NULL;
    int code = flags->language ? 0 : input_language_of(engine, file, &id, err);
    if (code == 0 && id)
        code = cordon_request_set_language(flags->request, id, err);
    if (code == 0 && !flags->no_cache)
        input_prebuild(engine, id ? id : flags->language, flags->quiet, is_not_interrupted);
    return code;
}

int cmd_run(int argc, char **argv)
{
    cordon_error err = {0};
    const char *file = NULL;
    struct relay relay = {0};
    auto_close int output_dir = -1;
    __attribute__((cleanup(cleanup_engine))) cordon_engine *engine = NULL;
    __attribute__((cleanup(cleanup_result))) cordon_result *result = NULL;
    __attribute__((cleanup(cleanup_flags))) struct run_flags flags = {.request = cordon_request_new()};
    if (!flags.request) {
        error_nomem(&err);
        return report_error(&err, false);
    }
    /* A closed pipe is an errno to act on, not a death that leaves the program's end unreported. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);

    /* First of all, so that the warden gets ready beside everything else here and knows nothing of the request. */
    cordon_error engine_err;
    int engine_code = warden_open_engine(&engine, &engine_err);

    int code = read_command_line(&flags, argc, argv, &file, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code < 0 && !flags.json && !strcmp(err.step, "usage"))
        return report_usage(&err, "run");
    if (code == 0 && flags.output_dir)
        code = outdir_open(flags.output_dir, &output_dir, &err);
    if (code == 0 && engine_code < 0) {
        err = engine_err;
        code = engine_code;
    }
    catch_signals();
    if (code == 0)
        code = settle_language(engine, &flags, file, &err);
    if (code == 0 && flags.warm) {
        int ready = cordon_engine_warm(engine, flags.request, 1, WARM_PATIENCE_MS, &err);
        code = ready < 0 ? ready : 0;
    }
    if (code == 0) {
        cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
        options.on_output = flags.json ? NULL : on_output;
        options.context = &relay;
        options.no_cache = flags.no_cache;
        options.stdin_fd = stdin_for_program(&flags, file && !strcmp(file, "-"));
        code = run_hook_begin(&flags, &options, &err);
        if (code == 0)
            code = run_to_end(engine, &flags, &options, &result, &err);
        if (code == 0)
            code = run_hook_end(&flags, result, &err);
    }
    if (code == CORDON_EGONE)
        warden_reap_orphans();
    return code < 0 ? report_error(&err, flags.json) : finish(&flags, &relay, output_dir, result);
}
