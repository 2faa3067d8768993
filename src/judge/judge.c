/* Owns the answer to a request for tests: a Result whose `tests` is filled. Called by the command line and by the
 * daemon's workers; what is judged is cases.c's and framework.c's. */
#include "judge/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "engine/result.h"
#include "judge/cases.h"
#include "judge/framework.h"
#include "judge/show.h"
#include "output/capture.h"

static json_t *tests_object(json_t *rows, size_t passed, size_t failed, size_t skipped)
{
    json_int_t total = (json_int_t)passed + (json_int_t)failed + (json_int_t)skipped;
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "passed", (json_int_t)passed, "failed", (json_int_t)failed, "skipped",
                     (json_int_t)skipped, "total", total, "cases", rows);
}

static int set_reason_text(cordon_result *result, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return -1;
    free(result->reason);
    result->reason = copy;
    return 0;
}

/* "case 3 failed: line 2, column 1: …" */
static int set_reason(cordon_result *result, const json_t *row)
{
    const char *reason = json_string_value(json_object_get(row, "reason"));
    auto_buf struct buf line = {0};
    buf_printf(&line, "%s: %s", json_string_value(json_object_get(row, "name")),
               json_string_value(json_object_get(row, "status")));
    if (reason)
        buf_printf(&line, ": %s", reason);
    return line.failed ? -1 : set_reason_text(result, buf_text(&line));
}

static int set_cancelled(cordon_result *result, size_t done, size_t total)
{
    char reason[96];
    snprintf(reason, sizeof reason, "cancelled after %zu of %zu cases", done, total);
    result->program.status = CORDON_STATUS_CANCELLED;
    return set_reason_text(result, reason);
}

/* The result that stands for all, taken from where it is kept. */
static cordon_result *take_result(struct bench *bench, struct tally *tally, const json_t *request)
{
    if (tally->result)
        return take_ptr(&tally->result);
    if (bench->program.failed)
        return take_ptr(&bench->program.failed);
    const char *language = json_string_value(json_object_get(request, "language"));
    return result_of_nothing(bench->engine, language ? language : "");
}

static int describe_cases(cordon_result *result, const struct tally *tally)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows && i < tally->count; i++)
        if (tally->rows[i])
            json_array_append(rows, tally->rows[i]);
    result->tests = rows ? tests_object(rows, tally->passed, tally->failed, tally->skipped) : NULL;
    result->is_judged_good = tally->passed == tally->count;
    int code = result->tests ? 0 : -1;
    if (code == 0 && tally->failing != SIZE_MAX)
        code = set_reason(result, tally->rows[tally->failing]);
    if (code == 0 && tally->is_cancelled && tally->passed < tally->count)
        code = set_cancelled(result, tally->passed + tally->failed, tally->count);
    return code;
}

/* Hands the result over when everything went well, and frees it otherwise. */
static int hand_over(cordon_result *result, int code, cordon_result **answer, cordon_error *err)
{
    if (result && code == 0) {
        *answer = result;
        return 0;
    }
    cordon_result_free(result);
    return error_nomem(err);
}

/* A case may be judged by more output than the result keeps. */
static int cut_output(struct outcome *outcome, size_t most)
{
    for (int i = 0; i < 2; i++) {
        struct capture capture;
        if (!outcome->out[i] || outcome->out_length[i] <= most)
            continue;
        capture_init(&capture, most);
        capture_feed(&capture, outcome->out[i], outcome->out_length[i]);
        size_t length, cut_at;
        char *text = capture.failed ? NULL : capture_text(&capture, &length, &cut_at);
        capture_free(&capture);
        if (!text)
            return -1;
        free(outcome->out[i]);
        outcome->out[i] = text;
        outcome->out_length[i] = length;
        outcome->cut_at[i] = cut_at;
        outcome->truncated[i] = true;
    }
    return 0;
}

static int run_cases(cordon_engine *engine, const json_t *request, const struct spec *spec,
                     const struct judge_options *options, cordon_result **answer, cordon_error *err)
{
    struct bench bench;
    struct tally tally = {0};
    int code = bench_open(&bench, engine, request, spec, options, err);
    if (code < 0)
        return code;
    code = cases_run(&bench, options, &tally, err);
    if (code == 0) {
        cordon_result *result = take_result(&bench, &tally, request);
        int failed = result ? show_result(result, options ? options->filter : NULL) : -1;
        if (failed == 0)
            failed = cut_output(&result->program, (size_t)bench.output_bytes);
        if (failed == 0)
            failed = describe_cases(result, &tally);
        code = hand_over(result, failed, answer, err);
        tally_free(&tally);
    }
    if (options && options->account)
        account_add(options->account, &bench.runs.account);
    bench_close(&bench);
    return code;
}

/* A report's rows in the shape of cases. */
static json_t *framework_rows(const struct report *report, const struct judge_options *options)
{
    const cordon_filter *filter = options ? options->filter : NULL;
    json_t *rows = json_array(), *row;
    size_t i, total = json_array_size(report->rows);
    json_array_foreach(report->rows, i, row)
    {
        auto_buf struct buf name = {0}, message = {0};
        const json_t *told = json_object_get(row, "message"), *called = json_object_get(row, "name");
        struct slice words = {json_is_string(told) ? json_string_value(told) : "", json_string_length(told)};
        show_filter(filter, 0, (struct slice){json_string_value(called), json_string_length(called)}, &name);
        show_filter(filter, 0, words, &message);
        json_t *made = json_pack(
            "{s:o, s:O, s:n, s:n, s:{s:O}, s:o}", "name",
            show_text((struct slice){buf_text(&name), name.length}, SIZE_MAX), "status", json_object_get(row, "status"),
            "expected", "got", "usage", "wall_ms", json_object_get(row, "wall_ms"), "reason",
            json_is_string(told) ? show_text((struct slice){buf_text(&message), message.length}, SIZE_MAX)
                                 : json_null());
        if (!made || json_array_append_new(rows, made) < 0) {
            json_decref(rows);
            return NULL;
        }
        if (options && options->on_case)
            options->on_case(options->context, i, total, made);
    }
    return rows;
}

static const json_t *first_failed(const json_t *rows)
{
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (!strcmp(json_string_value(json_object_get(row, "status")), "failed"))
            return row;
    }
    return NULL;
}

static int describe_framework(cordon_result *result, const struct report *report, const json_t *request,
                              const struct judge_options *options)
{
    cordon_status status = cordon_result_status(result);
    const char *language = json_string_value(json_object_get(request, "language"));
    char *copy = strdup(language ? language : "");
    json_t *rows = framework_rows(report, options);
    result->tests = rows ? tests_object(rows, report->passed, report->failed, report->skipped) : NULL;
    result->is_judged_good = status == CORDON_STATUS_OK && report->passed && !report->failed;
    if (!copy || !result->tests) {
        free(copy);
        return -1;
    }
    free(result->language);
    result->language = copy;
    const json_t *failed = first_failed(rows);
    if (failed && status <= CORDON_STATUS_NONZERO_EXIT)
        return set_reason(result, failed);
    return status == CORDON_STATUS_OK && !report->passed ? set_reason_text(result, "no test was run") : 0;
}

static int run_framework(cordon_engine *engine, const json_t *request, const struct spec *spec,
                         const struct judge_options *options, cordon_result **answer, cordon_error *err)
{
    const struct framework *framework;
    cordon_result *result = NULL;
    struct report report = {0};
    int code = framework_find(engine, request, spec, &framework, err);
    if (code == 0)
        code = framework_check(framework, request, spec, NULL, NULL, err);
    if (code == 0)
        code = framework_run(engine, framework, request, spec, options, &result, &report, err);
    if (code < 0)
        return code;
    int failed = show_result(result, options ? options->filter : NULL);
    if (failed == 0)
        failed = describe_framework(result, &report, request, options);
    report_free(&report);
    return hand_over(result, failed, answer, err);
}

/* Output that was to be redacted must not pass unredacted. */
static int check_filter(const json_t *request, const struct judge_options *options, cordon_error *err)
{
    const json_t *sanitize = json_object_get(request, "sanitize"), *value;
    char field[128] = "/sanitize", *at = field;
    const char *name;
    bool needs = sanitize && !json_is_false(sanitize);
    json_object_foreach(json_object_get((json_t *)request, "env"), name, value)
    {
        if (!needs && json_is_true(json_object_get(value, "secret"))) {
            snprintf(at, sizeof field, "/env/%.100s", name);
            needs = true;
        }
    }
    if (!needs || (options && options->filter))
        return 0;
    error_field(err, field, "nothing here can redact it in the output");
    return error_hint(err, "use `cordon test` or the daemon, or give the tests a filter");
}

/* The request as it is run: what its programs print is compared as it is, so the filter comes only where it is shown.
 */
static json_t *unfiltered(const json_t *request)
{
    json_t *plain = json_copy((json_t *)request), *env = json_deep_copy(json_object_get(request, "env")), *value;
    const char *name;
    void *safe;
    json_object_del(plain, "sanitize");
    json_object_foreach_safe(env, safe, name, value)
    {
        if (json_is_true(json_object_get(value, "secret")))
            json_object_set_new(value, "secret", json_false());
    }
    if (env)
        json_object_set_new(plain, "env", env);
    return plain;
}

int judge_result(cordon_engine *engine, const json_t *request, const struct judge_options *options,
                 cordon_result **result, cordon_error *err)
{
    auto_spec struct spec spec = {0};
    cordon_error unasked = {0};
    err = err ? err : &unasked;
    int code = spec_read(json_object_get(request, "tests"), &spec, err);
    if (code == 0)
        code = check_filter(request, options, err);
    if (code < 0)
        return code;
    json_t *plain = unfiltered(request);
    if (!plain)
        return error_nomem(err);
    code = spec.cases ? run_cases(engine, plain, &spec, options, result, err)
                      : run_framework(engine, plain, &spec, options, result, err);
    json_decref(plain);
    return code;
}

int judge_run(cordon_engine *engine, const json_t *request, const struct judge_options *options, json_t **result,
              cordon_error *err)
{
    cordon_result *judged = NULL;
    int code = judge_result(engine, request, options, &judged, err);
    if (code < 0)
        return code;
    *result = result_object(judged);
    cordon_result_free(judged);
    return *result ? 0 : error_nomem(err);
}

int judge_check(const json_t *request, const struct judge_options *options, struct judge_needs *needs,
                cordon_error *err)
{
    auto_spec struct spec spec = {0};
    cordon_error unasked = {0};
    err = err ? err : &unasked;
    int code = spec_read(json_object_get(request, "tests"), &spec, err);
    if (code < 0)
        return code;
    if (spec.cases) {
        struct bench bench;
        code = bench_open(&bench, NULL, request, &spec, options, err);
        if (code < 0)
            return code;
        if (needs)
            *needs = bench_needs(&bench);
        bench_close(&bench);
        return 0;
    }
    const struct framework *framework;
    code = framework_find(NULL, request, &spec, &framework, err);
    return code < 0 ? code : framework_check(framework, request, &spec, options, needs, err);
}
