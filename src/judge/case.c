/* Owns the judgement of one case: what the kernel says of the program comes first, then what it printed. Called by the
 * workers of cases.c, any number at once. */
#include "judge/case.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/result.h"
#include "plan/word.h"

/* Room for white space that a comparison passes over. */
#define OUTPUT_SLACK ((size_t)64 << 10)

struct program_input case_input(const struct bench *bench, size_t index)
{
    const struct spec_case *one = &bench->spec->cases[index];
    struct program_input input = {.args = one->args, .limits = {bench->spec->limits, one->limits}};
    if (one->has_input)
        input.input = &one->input;
    if (one->has_expected)
        input.output_bytes = one->expected.length + one->expected.length / 4 + OUTPUT_SLACK;
    snprintf(input.pointer[0], sizeof input.pointer[0], "/tests");
    snprintf(input.pointer[1], sizeof input.pointer[1], "/tests/cases/%zu", index);
    return input;
}

/* What the caller may ask for, and what it then gets. */
static int admit(const struct program *program, cordon_request *request, struct judge_needs *needs, cordon_error *err)
{
    const struct judge_options *options = program->options;
    struct limits limits = request->limits;
    int code = options && options->admit ? options->admit(options->policy, request, &limits, err)
                                         : limits_complete(&limits, request->profile, err);
    int64_t memory = limits.value[LIMIT_MEMORY_BYTES], processes = limits.value[LIMIT_PROCESSES];
    if (code == 0 && memory > needs->memory_bytes)
        needs->memory_bytes = memory;
    if (code == 0 && processes > needs->processes)
        needs->processes = processes;
    return code;
}

static int64_t add_needs(int64_t a, int64_t b)
{
    return a > LIMIT_UNLIMITED - b ? LIMIT_UNLIMITED : a + b;
}

struct judge_needs bench_needs(const struct bench *bench)
{
    const struct judge_needs *program = &bench->program_needs, *checker = &bench->checker_needs,
                             *interactor = &bench->interactor_needs;
    struct judge_needs needs = {.memory_bytes = add_needs(program->memory_bytes, interactor->memory_bytes),
                                .processes = add_needs(program->processes, interactor->processes),
                                .output_bytes = bench->output_bytes,
                                .captured_bytes = bench->captured_bytes};
    if (checker->memory_bytes > needs.memory_bytes)
        needs.memory_bytes = checker->memory_bytes;
    if (checker->processes > needs.processes)
        needs.processes = checker->processes;
    return needs;
}

/* A helper is run under the same tolerance for missing controls as the program beside it. */
static int open_helper(struct bench *bench, const json_t *request, const json_t *json, size_t index, cordon_error *err)
{
    static const char *const shared[] = {"optional", "isolation", "environment"};
    const struct spec_case *one = &bench->spec->cases[index];
    const json_t *tests = json_object_get(request, "tests");
    const char *name = one->checker ? "checker" : "interactor";
    char pointer[96];
    if (one->interactor && json_object_get(request, "stdin"))
        return error_field(err, "/stdin", "an interactor gives the program its input; expected no stdin");
    if (json == json_object_get(tests, name))
        snprintf(pointer, sizeof pointer, "/tests/%s", name);
    else
        snprintf(pointer, sizeof pointer, "/tests/cases/%zu/%s", index, name);
    json_t *whole = json_copy((json_t *)json);
    for (size_t i = 0; whole && i < ARRAY_LEN(shared); i++)
        if (json_object_get(request, shared[i]))
            json_object_set(whole, shared[i], json_object_get(request, shared[i]));
    struct program *helper = &bench->helpers[bench->helper_count];
    int code = whole ? program_open(helper, whole, pointer, bench->program.options, err) : error_nomem(err);
    json_decref(whole);
    bench->helper_count += code == 0;
    struct program_input nothing = {0};
    cordon_request *made = NULL;
    if (code == 0)
        code = program_request(helper, &nothing, &made, err);
    if (code == 0)
        code = program_error(
            helper, admit(helper, made, one->checker ? &bench->checker_needs : &bench->interactor_needs, err), err);
    cordon_request_free(made);
    return code;
}

/* Cases often share a checker, written once for all or again for each: then it is one program, compiled once. The one
 * for all may come again after a case's own; were it opened each time, a short request could hold any amount of memory.
 */
static int open_helpers(struct bench *bench, const json_t *request, cordon_error *err)
{
    const json_t *tests = json_object_get(request, "tests"), *last = NULL, *json;
    const json_t *usual = json_object_get(tests, "checker");
    struct program *of_usual = NULL;
    if (!usual)
        usual = json_object_get(tests, "interactor");
    bench->helpers = calloc(bench->spec->count, sizeof *bench->helpers);
    bench->helper_of = calloc(bench->spec->count, sizeof(void *));
    if (!bench->helpers || !bench->helper_of)
        return error_nomem(err);
    for (size_t i = 0; i < bench->spec->count; i++) {
        const struct spec_case *one = &bench->spec->cases[i];
        json = one->checker ? one->checker : one->interactor;
        if (!json)
            continue;
        if (json == usual && of_usual) {
            bench->helper_of[i] = of_usual;
            continue;
        }
        if (!last || (json != last && !json_equal(json, last))) {
            int code = open_helper(bench, request, json, i, err);
            if (code < 0)
                return code;
        }
        last = json;
        bench->helper_of[i] = &bench->helpers[bench->helper_count - 1];
        if (json == usual)
            of_usual = bench->helper_of[i];
    }
    return 0;
}

/* Whose limit it is that is refused: the case's, or that of all cases, or the request's. */
static void point_to_limits(const struct bench *bench, const struct spec_case *one, const struct program_input *input,
                            cordon_error *err)
{
    const json_t *of[] = {bench->spec->limits, one->limits};
    char field[sizeof err->field];
    const char *name = strrchr(err->field, '/');
    for (int i = 1; i >= 0 && name; i--)
        if (json_object_get(of[i], name + 1)) {
            snprintf(field, sizeof field, "%s/limits%s", input->pointer[i], name);
            memcpy(err->field, field, sizeof err->field);
            return;
        }
}

/* What the program may print for this case, and what is captured of that until the case is judged: what is expected has
 * to fit, and a conversation is captured on both sides. */
static int count_output(struct bench *bench, size_t index, const struct limits *limits, cordon_request *request,
                        cordon_error *err)
{
    struct program_input input = case_input(bench, index);
    size_t wanted = bench->spec->cases[index].interactor ? TRAFFIC_BYTES : input.output_bytes;
    input.output_bytes = 0;
    int code = program_give(&bench->program, &input, limits, request, err);
    struct limits own = request->limits;
    if (code == 0)
        code = limits_complete(&own, request->profile, err);
    int64_t output = own.value[LIMIT_OUTPUT_BYTES], captured = output;
    if (code == 0 && !(request->limits.given >> LIMIT_OUTPUT_BYTES & 1) && captured < (int64_t)wanted)
        captured = (int64_t)wanted;
    captured = add_needs(captured, captured);
    if (bench->spec->cases[index].interactor)
        captured = add_needs(captured, captured);
    if (code == 0 && output > bench->output_bytes)
        bench->output_bytes = output;
    if (code == 0 && captured > bench->captured_bytes)
        bench->captured_bytes = captured;
    return code;
}

static int check_case(struct bench *bench, size_t index, const struct limits *limits, cordon_request *request,
                      cordon_error *err)
{
    const struct spec_case *one = &bench->spec->cases[index];
    struct program_input input = case_input(bench, index);
    int code = program_give(&bench->program, &input, limits, request, err);
    if (code < 0)
        return code;
    code = admit(&bench->program, request, &bench->program_needs, err);
    if (code < 0 && err)
        point_to_limits(bench, one, &input, err);
    return code;
}

/* The program is read once: it may be large, and the cases may be many. */
static int check_cases(struct bench *bench, cordon_error *err)
{
    cordon_request *request = NULL;
    int code = program_read(&bench->program, &request, err);
    const struct limits limits = code == 0 ? request->limits : (struct limits){0};
    for (size_t i = 0; i < bench->spec->count && code == 0; i++) {
        const struct spec_case *one = &bench->spec->cases[i];
        /* The first stands for all that have nothing of their own. */
        if (i == 0 || one->args || one->limits)
            code = check_case(bench, i, &limits, request, err);
        if (code == 0)
            code = count_output(bench, i, &limits, request, err);
    }
    cordon_request_free(request);
    return code;
}

int bench_open(struct bench *bench, cordon_engine *engine, const json_t *request, const struct spec *spec,
               const struct judge_options *options, cordon_error *err)
{
    *bench = (struct bench){.engine = engine, .spec = spec};
    runs_open(&bench->runs);
    int code = program_open(&bench->program, request, "", options, err);
    if (code == 0)
        code = check_cases(bench, err);
    if (code == 0)
        code = open_helpers(bench, request, err);
    if (code < 0)
        bench_close(bench);
    return code;
}

void bench_close(struct bench *bench)
{
    program_close(&bench->program);
    for (size_t i = 0; i < bench->helper_count; i++)
        program_close(&bench->helpers[i]);
    free(bench->helpers);
    free(bench->helper_of);
    runs_close(&bench->runs);
    *bench = (struct bench){0};
}

void verdict_free(struct verdict *verdict)
{
    cordon_result_free(verdict->result);
    buf_free(&verdict->message);
    *verdict = (struct verdict){0};
}

static int run_once(struct bench *bench, struct program *program, size_t index, const struct program_input *input,
                    cordon_result **result, cordon_error *err)
{
    cordon_request *request = NULL;
    cordon_run *run = NULL;
    int code = program_request(program, input, &request, err);
    if (code == 0)
        code = program_start(program, bench->engine, request, NULL, &run, err);
    if (code == 0)
        code = runs_wait(&bench->runs, index, run, result, err);
    cordon_run_free(run);
    cordon_request_free(request);
    return code;
}

/* A helper's message is for one line or a few; it comes from a program, so it is bounded. */
#define MESSAGE_MAX ((size_t)4 << 10)

static void put_message(struct buf *message, struct slice said)
{
    size_t length = said.length < MESSAGE_MAX ? said.length : MESSAGE_MAX;
    while (length && strchr(" \t\r\n", said.data[length - 1]))
        length--;
    buf_append(message, said.data, length);
}

void verdict_by_helper(struct verdict *verdict, const char *what, const cordon_result *result, struct slice said)
{
    int exit_code = cordon_result_exit_code(result);
    cordon_status status = cordon_result_status(result);
    bool own_end = status == CORDON_STATUS_OK || (status == CORDON_STATUS_NONZERO_EXIT && exit_code == 1);
    verdict->status = !own_end ? "checker_error" : exit_code ? "failed" : "passed";
    if (status == CORDON_STATUS_CANCELLED)
        verdict->status = "cancelled";
    if (!own_end) {
        const char *reason = cordon_result_reason(result);
        buf_printf(&verdict->message, "the %s failed: %s", what, reason ? reason : cordon_status_name(status));
    }
    /* One that crashed has said so there. */
    if (!said.length)
        said.data = cordon_result_stderr(result, &said.length);
    buf_puts(&verdict->message, !own_end && said.length ? ": " : "");
    put_message(&verdict->message, said);
    if (!verdict->message.length && exit_code)
        buf_printf(&verdict->message, "the %s says that it is wrong", what);
}

static void helper_not_compiled(struct verdict *verdict, const char *what, const cordon_result *failed)
{
    size_t length;
    const char *text = cordon_result_stderr(failed, &length);
    bool is_cancelled = cordon_result_status(failed) == CORDON_STATUS_CANCELLED;
    verdict->status = is_cancelled ? "cancelled" : "checker_error";
    buf_printf(&verdict->message, "the %s did not compile: ", what);
    put_message(&verdict->message, (struct slice){text, length});
}

static int check(struct bench *bench, struct program *checker, struct verdict *verdict, cordon_error *err)
{
    const struct spec_case *one = &bench->spec->cases[verdict->index];
    struct slice got = {0}, said = {0};
    got.data = cordon_result_stdout(verdict->result, &got.length);
    const struct program_file files[] = {
        {"input.txt", one->input}, {"output.txt", got}, {"expected.txt", one->expected}};
    json_t *names = json_pack("[s, s, s]", files[0].path, files[1].path, files[2].path);
    struct program_input input = {.args = names, .files = files, .file_count = ARRAY_LEN(files)};
    cordon_result *result = NULL;
    int code = names ? program_prepare(checker, bench->engine, &bench->runs, err) : error_nomem(err);
    if (code == 0 && checker->failed)
        helper_not_compiled(verdict, "checker", checker->failed);
    else if (code == 0)
        code = run_once(bench, checker, verdict->index, &input, &result, err);
    if (code == 0 && result) {
        said.data = cordon_result_stdout(result, &said.length);
        verdict_by_helper(verdict, "checker", result, said);
    }
    cordon_result_free(result);
    json_decref(names);
    return code;
}

/* The program did well; now for what it printed. */
static int judge_output(struct bench *bench, struct verdict *verdict, cordon_error *err)
{
    const struct spec_case *one = &bench->spec->cases[verdict->index];
    struct slice got;
    got.data = cordon_result_stdout(verdict->result, &got.length);
    verdict->is_cut = verdict->result->program.truncated[0];
    if (verdict->is_cut && (one->checker || one->has_expected)) {
        verdict->status = "failed";
        buf_printf(&verdict->message,
                   "printed %zu bytes, of which limits.output_bytes kept %lld; raise it to have them compared",
                   verdict->result->program.out_total[0],
                   (long long)verdict->result->program.limits.value[LIMIT_OUTPUT_BYTES]);
        return 0;
    }
    if (one->checker)
        return check(bench, bench->helper_of[verdict->index], verdict, err);
    bool same = !one->has_expected || compare_output(one->match, one->tolerance, one->expected, got, NULL);
    verdict->status = same ? "passed" : "failed";
    verdict->is_compared = !same;
    return 0;
}

/* "exited with 1: ZeroDivisionError: division by zero, main.py line 3" */
static void tell_end(struct verdict *verdict, const cordon_result *result)
{
    const struct explanation *error = &result->error;
    const char *reason = cordon_result_reason(result);
    buf_puts(&verdict->message, reason ? reason : cordon_status_name(cordon_result_status(result)));
    bool is_own = cordon_result_status(result) <= CORDON_STATUS_SIGNALED ||
                  cordon_result_status(result) == CORDON_STATUS_COMPILE_ERROR;
    /* Where a signal ended it, the error has no words but those. */
    if (!result->has_error || !is_own || !error->message || (reason && strstr(reason, error->message)))
        return;
    buf_puts(&verdict->message, ": ");
    if (error->type && strcmp(error->type, error->message) != 0)
        buf_printf(&verdict->message, "%.200s: ", error->type);
    put_message(&verdict->message, (struct slice){error->message, strlen(error->message)});
    if (error->line)
        buf_printf(&verdict->message, ", %s%sline %ld", error->file ? error->file : "", error->file ? " " : "",
                   error->line);
}

int case_run(struct bench *bench, size_t index, struct verdict *verdict, cordon_error *err)
{
    *verdict = (struct verdict){.index = index};
    int code = program_prepare(&bench->program, bench->engine, &bench->runs, err);
    if (code < 0)
        return code;
    if (bench->program.failed) {
        verdict->status = cordon_status_name(cordon_result_status(bench->program.failed));
        tell_end(verdict, bench->program.failed);
        return 0;
    }
    if (bench->spec->cases[index].interactor) {
        struct program *helper = bench->helper_of[index];
        code = program_prepare(helper, bench->engine, &bench->runs, err);
        if (code == 0 && helper->failed)
            helper_not_compiled(verdict, "interactor", helper->failed);
        else if (code == 0)
            code = interact_run(bench, index, helper, verdict, err);
    } else {
        struct program_input input = case_input(bench, index);
        code = run_once(bench, &bench->program, index, &input, &verdict->result, err);
        if (code == 0 && cordon_result_status(verdict->result) == CORDON_STATUS_OK)
            code = judge_output(bench, verdict, err);
    }
    if (code == 0 && !verdict->status) {
        verdict->status = cordon_status_name(cordon_result_status(verdict->result));
        tell_end(verdict, verdict->result);
    }
    if (code < 0)
        verdict_free(verdict);
    return code;
}
