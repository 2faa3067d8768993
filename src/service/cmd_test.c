/* `cordon test`: one program, many cases, a table of what went wrong. Verdicts are the judge's. Called by main(). */
#include <cordon/cordon.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/plain.h"
#include "base/units.h"
#include "cli/engine.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "judge/compare.h"
#include "judge/judge.h"
#include "output/json_text.h"
#include "plan/request_json.h"
#include "service/commands.h"
#include "service/interrupt.h"
#include "service/sanitizer.h"
#include "service/test_flags.h"

#define FAILED_SHOWN 20
#define CELL_WIDTH   32
#define REDRAW_US    50000

struct progress {
    bool is_shown;
    size_t done, failed;
    uint64_t drawn_us;
};

static void on_case(void *context, size_t index, size_t total, const json_t *one)
{
    struct progress *progress = context;
    const char *status = member_text(one, "status");
    (void)index;
    progress->done++;
    progress->failed += strcmp(status, "passed") != 0 && strcmp(status, "skipped") != 0;
    if (!progress->is_shown || (clock_us() - progress->drawn_us < REDRAW_US && progress->done < total))
        return;
    progress->drawn_us = clock_us();
    fprintf(stderr, "\r%zu of %zu", progress->done, total);
    if (progress->failed)
        fprintf(stderr, ", %zu failed", progress->failed);
    fflush(stderr);
}

static void clear_progress(const struct progress *progress)
{
    if (progress->is_shown && progress->done)
        fputs("\r\033[K", stderr);
}

/* One line of text in which nothing can steer the terminal, at most so wide; freed by the caller. */
static char *short_text(const json_t *value)
{
    struct buf quoted = {0};
    if (!json_is_string(value))
        return strdup("");
    compare_quote(&quoted, json_string_value(value), json_string_length(value));
    size_t width = 0, end = 0;
    for (; end < quoted.length && width < CELL_WIDTH; end++)
        width += ((unsigned char)quoted.data[end + 1] & 0xc0) != 0x80;
    if (end < quoted.length) {
        quoted.length = end;
        buf_puts(&quoted, "…");
    }
    return quoted.data;
}

/* The same without quotes and uncut, for names and reasons. */
static char *plain_text(const char *text)
{
    auto_free char *copy = strdup(text ? text : "");
    for (char *at = copy; at && *at; at++)
        if ((unsigned char)*at < 0x20)
            *at = ' ';
    return copy ? plain_copy(copy) : NULL;
}

/* The figure by which runs of one program can be compared; empty for a case that was not run. */
static char *memory_text(const json_t *one)
{
    char text[48];
    const json_t *bytes = json_object_get(json_object_get(one, "usage"), "memory_program_peak_bytes");
    return strdup(bytes ? units_format_bytes(json_integer_value(bytes), text, sizeof text) : "");
}

enum { NAME, STATUS, MEMORY, EXPECTED, GOT, COLUMNS };

static void fill_row(struct cell_text *cells, const json_t *one)
{
    cells[NAME].text = plain_text(member_text(one, "name"));
    cells[STATUS] = (struct cell_text){plain_text(member_text(one, "status")), TINT_BAD};
    cells[MEMORY].text = memory_text(one);
    cells[EXPECTED].text = short_text(json_object_get(one, "expected"));
    cells[GOT].text = short_text(json_object_get(one, "got"));
}

static bool is_failed(const json_t *one)
{
    const char *status = member_text(one, "status");
    return status && strcmp(status, "passed") != 0 && strcmp(status, "skipped") != 0;
}

/* What went wrong in each, after the table: a reason does not fit into a column. */
static void show_reasons(const json_t *cases, size_t most)
{
    size_t i, shown = 0;
    const json_t *one;
    json_array_foreach(cases, i, one)
    {
        if (!is_failed(one) || shown++ >= most)
            continue;
        auto_free char *name = plain_text(member_text(one, "name"));
        auto_buf struct buf line = {0};
        run_flags_put_reason(&line, member_text(one, "reason") ? member_text(one, "reason") : "");
        auto_free char *reason = plain_text(buf_text(&line));
        if (name && reason && *reason)
            printf("%s: %s\n", name, reason);
    }
}

static void show_failed(const json_t *cases, size_t failed)
{
    static const struct cell_text head[COLUMNS] = {
        {"case", TINT_BOLD}, {"status", TINT_BOLD}, {"memory", TINT_BOLD}, {"expected", TINT_BOLD}, {"got", TINT_BOLD}};
    struct cell_text cells[(FAILED_SHOWN + 1) * COLUMNS] = {{0}};
    size_t i, rows = 1;
    const json_t *one;
    memcpy(cells, head, sizeof head);
    json_array_foreach(cases, i, one)
    {
        if (is_failed(one) && rows <= FAILED_SHOWN)
            fill_row(&cells[rows++ * COLUMNS], one);
    }
    terminal_table(stdout, cells, COLUMNS, rows);
    if (failed > FAILED_SHOWN)
        printf("… and %zu more; --json has them all\n", failed - FAILED_SHOWN);
    putchar('\n');
    show_reasons(cases, FAILED_SHOWN);
    putchar('\n');
    for (i = COLUMNS; i < rows * COLUMNS; i++)
        free((char *)cells[i].text);
}

static size_t number(const json_t *object, const char *name)
{
    return (size_t)json_integer_value(json_object_get(object, name));
}

static void show_summary(const json_t *result, double seconds)
{
    const json_t *tests = json_object_get(result, "tests");
    size_t failed = number(tests, "failed"), skipped = number(tests, "skipped");
    char passed[64];
    snprintf(passed, sizeof passed, "%zu of %zu passed", number(tests, "passed"), number(tests, "total"));
    terminal_tint(stdout, json_is_true(json_object_get(result, "success")) ? TINT_GOOD : TINT_BAD, passed);
    if (failed)
        printf(", %zu failed", failed);
    if (skipped)
        printf(", %zu not run", skipped);
    printf(" (%.2f s)\n", seconds);
}

static void pass_on(const json_t *text)
{
    if (json_string_length(text))
        terminal_write(STDOUT_FILENO, json_string_value(text), json_string_length(text), NULL);
}

/* A program that does not compile fails all its cases alike, and a framework has told what it found in its own words:
 * those are shown instead of a table. */
static void show(const struct test_flags *flags, const json_t *result, double seconds)
{
    const json_t *tests = json_object_get(result, "tests"), *cases = json_object_get(tests, "cases");
    const char *status = member_text(result, "status"), *reason = member_text(result, "reason");
    size_t failed = number(tests, "failed");
    bool is_compiler = status && !strcmp(status, "compile_error");
    bool is_framework = json_object_get(json_object_get(flags->request, "tests"), "framework");
    bool is_good = json_is_true(json_object_get(result, "success"));
    if (!is_good && !flags->run.quiet) {
        if (is_framework && !is_compiler)
            pass_on(json_object_get(result, "stdout"));
        if (is_compiler || (is_framework && !failed))
            pass_on(json_object_get(result, "stderr"));
        if (is_framework)
            show_reasons(cases, FAILED_SHOWN);
        else if (failed && !is_compiler)
            show_failed(cases, failed);
        if ((is_compiler || !failed) && reason)
            terminal_say("%s", reason);
    }
    show_summary(result, seconds);
}

static int open_engine(const struct test_flags *flags, cordon_engine **engine, cordon_error *err)
{
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    options.warm = 1;
    if (flags->run.no_cache)
        options.cache_bytes = SIZE_MAX;
    return cli_engine_open(&options, engine, err);
}

static int settle_language(cordon_engine *engine, const struct test_flags *flags, const char *file, cordon_error *err)
{
    auto_free char *id = NULL;
    int code = flags->run.language ? 0 : input_language_of(engine, file, &id, err);
    if (code == 0 && id)
        code = json_object_set_new(flags->request, "language", json_string(id));
    if (code == 0 && !flags->run.no_cache)
        input_prebuild(engine, id ? id : flags->run.language, flags->run.quiet, interrupt_is_absent);
    return code;
}

static int finish(const struct test_flags *flags, const json_t *result, double seconds)
{
    if (flags->run.json) {
        auto_free char *text = json_text(result, NULL);
        int code = text ? report_json_text(text) : EXIT_OWN_FAILURE;
        if (code)
            return code;
    } else
        show(flags, result, seconds);
    const char *status = member_text(result, "status");
    if (atomic_load(&interrupted) && status && !strcmp(status, "cancelled"))
        return EXIT_INTERRUPTED;
    return json_is_true(json_object_get(result, "success")) ? 0 : 1;
}

static int run(struct test_flags *flags, const char *file, json_t **result, cordon_error *err)
{
    cordon_engine *engine = NULL;
    struct progress progress = {.is_shown = !flags->run.json && !flags->run.quiet && isatty(STDERR_FILENO)};
    struct judge_options options = {
        .parallel = flags->parallel, .cancel = &interrupted, .on_case = on_case, .context = &progress};
    cordon_request *request = NULL;
    struct sanitizer sanitizer = {0};
    int code = open_engine(flags, &engine, err);
    if (code == 0)
        code = settle_language(engine, flags, file, err);
    if (code == 0)
        code = request_from_object(flags->request, &request, err);
    if (code == 0)
        code = sanitizer_open(&sanitizer, request, SANITIZE_NONE, err);
    options.filter = sanitizer_filter(&sanitizer);
    if (code == 0)
        code = judge_run(engine, flags->request, &options, result, err);
    if (code == 0)
        json_object_set_new(*result, "redactions", redactor_counts_json(sanitizer.redactor));
    sanitizer_close(&sanitizer);
    cordon_request_free(request);
    clear_progress(&progress);
    cordon_engine_close(engine);
    return code;
}

/* A file of tests holds many fields of one name: which one is wrong must be said. */
static void name_field(cordon_error *err)
{
    char text[sizeof err->text];
    if (strncmp(err->field, "/tests", strlen("/tests")) != 0)
        return;
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "%s: %.250s", err->field, text);
}

int cmd_test(int argc, char **argv)
{
    cordon_error err = {0};
    const char *file = NULL;
    __attribute__((cleanup(test_flags_free))) struct test_flags flags = {.run.request = cordon_request_new(),
                                                                         .request = json_object()};
    auto_json json_t *result = NULL;
    uint64_t begin = clock_us();
    if (!flags.run.request || !flags.request) {
        error_nomem(&err);
        return report_error(&err, false);
    }
    interrupt_catch();
    int code = test_flags_read(&flags, argc, argv, &file, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code < 0 && !flags.run.json && !strcmp(err.step, "usage"))
        return report_usage(&err, "test");
    if (code == 0)
        code = run(&flags, file, &result, &err);
    if (code < 0)
        name_field(&err);
    return code < 0 ? report_error(&err, flags.run.json) : finish(&flags, result, (double)(clock_us() - begin) / 1e6);
}
