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

/* Of a run that never was: everything ended before the first case did. */
static json_t *empty_result(const char *language)
{
    return json_pack("{s:s, s:s?, s:s, s:b, s:n, s:n, s:s, s:s, s:b, s:b, s:n, s:n, s:n, s:[], s:[]}", "state", "done",
                     "language", language, "status", "cancelled", "success", 0, "exit_code", "signal", "stdout", "",
                     "stderr", "", "stdout_truncated", 0, "stderr_truncated", 0, "value", "compile", "error",
                     "redactions", "files");
}

static json_t *result_object(cordon_result *result, const cordon_filter *filter, const json_t *request,
                             cordon_error *err)
{
    json_t *object;
    if (!result)
        object = empty_result(json_string_value(json_object_get(request, "language")));
    else {
        const char *text = show_result(result, filter) == 0 ? cordon_result_json(result) : NULL;
        object = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    }
    if (!object)
        error_nomem(err);
    return object;
}

static json_t *tests_object(json_t *rows, size_t passed, size_t failed, size_t skipped)
{
    json_int_t total = (json_int_t)passed + (json_int_t)failed + (json_int_t)skipped;
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "passed", (json_int_t)passed, "failed", (json_int_t)failed, "skipped",
                     (json_int_t)skipped, "total", total, "cases", rows);
}

/* "case 3 failed: line 2, column 1: …" */
static void set_reason(json_t *object, const json_t *row)
{
    const char *reason = json_string_value(json_object_get(row, "reason"));
    auto_buf struct buf line = {0};
    buf_printf(&line, "%s: %s", json_string_value(json_object_get(row, "name")),
               json_string_value(json_object_get(row, "status")));
    if (reason)
        buf_printf(&line, ": %s", reason);
    json_object_set_new(object, "reason", json_stringn(buf_text(&line), line.length));
}

static void set_cancelled(json_t *object, size_t done, size_t total)
{
    char reason[96];
    snprintf(reason, sizeof reason, "cancelled after %zu of %zu cases", done, total);
    json_object_set_new(object, "status", json_string("cancelled"));
    json_object_set_new(object, "reason", json_string(reason));
}

static json_t *answer_cases(struct bench *bench, struct tally *tally, const cordon_filter *filter,
                            const json_t *request, cordon_error *err)
{
    cordon_result *result = tally->result ? tally->result : bench->program.failed;
    json_t *object = result_object(result, filter, request, err), *rows = json_array();
    if (!object || !rows) {
        json_decref(object);
        json_decref(rows);
        error_nomem(err);
        return NULL;
    }
    for (size_t i = 0; i < tally->count; i++)
        if (tally->rows[i])
            json_array_append(rows, tally->rows[i]);
    json_object_set_new(object, "success", json_boolean(tally->passed == tally->count));
    if (tally->failing != SIZE_MAX)
        set_reason(object, tally->rows[tally->failing]);
    if (tally->is_cancelled && tally->passed < tally->count)
        set_cancelled(object, tally->passed + tally->failed, tally->count);
    json_object_set_new(object, "tests", tests_object(rows, tally->passed, tally->failed, tally->skipped));
    return object;
}

static int run_cases(cordon_engine *engine, const json_t *request, const struct spec *spec,
                     const struct judge_options *options, json_t **answer, cordon_error *err)
{
    struct bench bench;
    struct tally tally = {0};
    int code = bench_open(&bench, engine, request, spec, options, err);
    if (code < 0)
        return code;
    code = cases_run(&bench, options, &tally, err);
    if (code == 0) {
        *answer = answer_cases(&bench, &tally, options ? options->filter : NULL, request, err);
        code = *answer ? 0 : CORDON_ENOMEM;
        tally_free(&tally);
    }
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

static json_t *answer_framework(cordon_result *result, const struct report *report, const json_t *request,
                                const struct judge_options *options, cordon_error *err)
{
    bool did_well = cordon_result_status(result) == CORDON_STATUS_OK;
    json_t *rows = framework_rows(report, options);
    json_t *object = rows ? result_object(result, options ? options->filter : NULL, request, err) : NULL;
    if (!object) {
        json_decref(rows);
        error_nomem(err);
        return NULL;
    }
    const json_t *failed = first_failed(rows);
    json_object_set(object, "language", json_object_get(request, "language"));
    json_object_set_new(object, "success", json_boolean(did_well && report->passed && !report->failed));
    if (failed && cordon_result_status(result) <= CORDON_STATUS_NONZERO_EXIT)
        set_reason(object, failed);
    else if (did_well && !report->passed)
        json_object_set_new(object, "reason", json_string("no test was run"));
    json_object_set_new(object, "tests", tests_object(rows, report->passed, report->failed, report->skipped));
    return object;
}

static int run_framework(cordon_engine *engine, const json_t *request, const struct spec *spec,
                         const struct judge_options *options, json_t **answer, cordon_error *err)
{
    const struct framework *framework;
    cordon_result *result = NULL;
    struct report report = {0};
    int code = framework_find(engine, request, spec, &framework, err);
    if (code == 0)
        code = framework_check(framework, request, spec, err);
    if (code == 0)
        code = framework_run(engine, framework, request, spec, options, &result, &report, err);
    if (code < 0)
        return code;
    *answer = answer_framework(result, &report, request, options, err);
    report_free(&report);
    cordon_result_free(result);
    return *answer ? 0 : CORDON_ENOMEM;
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

int judge_run(cordon_engine *engine, const json_t *request, const struct judge_options *options, json_t **result,
              cordon_error *err)
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

int judge_check(const json_t *request, cordon_error *err)
{
    auto_spec struct spec spec = {0};
    cordon_error unasked = {0};
    err = err ? err : &unasked;
    int code = spec_read(json_object_get(request, "tests"), &spec, err);
    if (code < 0)
        return code;
    if (spec.cases) {
        struct bench bench;
        code = bench_open(&bench, NULL, request, &spec, NULL, err);
        if (code == 0)
            bench_close(&bench);
        return code;
    }
    const struct framework *framework;
    code = framework_find(NULL, request, &spec, &framework, err);
    return code < 0 ? code : framework_check(framework, request, &spec, err);
}
