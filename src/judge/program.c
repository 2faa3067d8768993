/* Owns the making of requests for single runs, and the compile step that they share. A request is made from its JSON
 * for every run: the library's own reader and setters judge every value. Called by case.c and interact.c. */
#include "judge/program.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/run.h"
#include "plan/request.h"
#include "plan/request_json.h"
#include "plan/word.h"

static void cleanup_request(cordon_request **request)
{
    cordon_request_free(*request);
}
#define auto_request __attribute__((cleanup(cleanup_request)))

/* The setters know a field by its name in a plain request; the caller wrote it further down. */
static int with_prefix(int code, const char *prefix, cordon_error *err)
{
    char field[sizeof err->field];
    if (code < 0 && err && *prefix) {
        memcpy(field, err->field, sizeof field);
        snprintf(err->field, sizeof err->field, "%.95s%.30s", prefix, field);
    }
    return code;
}

int program_open(struct program *program, const json_t *request, const char *pointer,
                 const struct judge_options *options, cordon_error *err)
{
    static const char *const own[] = {"tests", "args", "sanitize"};
    *program = (struct program){.args = json_object_get(request, "args"), .options = options};
    snprintf(program->pointer, sizeof program->pointer, "%s", pointer);
    pthread_mutex_init(&program->lock, NULL);
    json_t *base = json_copy((json_t *)request);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        json_object_del(base, own[i]);
    program->json = base ? json_dumps(base, JSON_COMPACT) : NULL;
    json_decref(base);
    return program->json ? 0 : error_nomem(err);
}

void program_close(struct program *program)
{
    if (!program->json)
        return;
    cordon_run_free(program->compiled);
    cordon_result_free(program->failed);
    cordon_request_free(program->source);
    pthread_mutex_destroy(&program->lock);
    free(program->json);
    program->json = NULL;
}

static int add_args(cordon_request *request, const json_t *args, const char *pointer, cordon_error *err)
{
    size_t i;
    const json_t *item;
    if (!args)
        return 0;
    if (!json_is_array(args))
        return json_wrong_type(args, pointer, "an array of strings", err);
    json_array_foreach(args, i, item)
    {
        const char *text;
        int code = json_read_text(item, word_pointer_index(pointer, i).text, &text, err);
        if (code == 0)
            code = cordon_request_add_arg(request, text, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static bool is_given(const cordon_request *request, enum limit limit)
{
    return request->limits.given & (1u << limit);
}

/* What is expected must fit into what is kept; a bound that was asked for stays. */
static int raise_output(cordon_request *request, size_t bytes, cordon_error *err)
{
    struct limits limits = request->limits;
    if (!bytes || is_given(request, LIMIT_OUTPUT_BYTES))
        return 0;
    int code = limits_complete(&limits, request->profile, err);
    if (code < 0 || limits.value[LIMIT_OUTPUT_BYTES] >= (int64_t)bytes)
        return code;
    return limit_set_number(LIMIT_OUTPUT_BYTES, (double)bytes, &request->limits, err);
}

static int apply(cordon_request *request, const struct program *program, const struct program_input *input,
                 cordon_error *err)
{
    int code = 0;
    if (input->args)
        code = add_args(request, input->args, word_pointer(input->pointer[1], "args").text, err);
    else
        code = add_args(request, program->args, word_pointer(program->pointer, "args").text, err);
    for (int i = 0; i < 2 && code == 0; i++)
        if (input->limits[i])
            code = with_prefix(json_read_limits(request, input->limits[i], "/limits", err), input->pointer[i], err);
    if (code == 0 && input->input)
        code = cordon_request_set_stdin(request, input->input->data, input->input->length, err);
    for (size_t i = 0; i < input->file_count && code == 0; i++) {
        const struct program_file *file = &input->files[i];
        code = cordon_request_add_file(request, file->path, file->content.data, file->content.length, err);
    }
    if (code == 0 && input->wall_ms && !is_given(request, LIMIT_WALL_MS))
        code = limit_set_number(LIMIT_WALL_MS, input->wall_ms, &request->limits, err);
    if (code == 0)
        code = raise_output(request, input->output_bytes, err);
    request->stop_on_output_limit |= input->stop_at_output;
    return code;
}

int program_error(const struct program *program, int code, cordon_error *err)
{
    return with_prefix(code, program->pointer, err);
}

int program_read(const struct program *program, cordon_request **request, cordon_error *err)
{
    auto_request cordon_request *made = NULL;
    int code = cordon_request_from_json(program->json, strlen(program->json), &made, err);
    if (code == 0)
        code = request_check(made, err);
    if (code == 0)
        *request = take_ptr(&made);
    return with_prefix(code, program->pointer, err);
}

static void drop_args(cordon_request *request)
{
    for (size_t i = 0; i < request->args.count; i++) {
        request->string_bytes -= strlen(request->args.items[i]) + 1;
        free(request->args.items[i]);
    }
    request->args.count = 0;
}

int program_give(const struct program *program, const struct program_input *input, const struct limits *limits,
                 cordon_request *request, cordon_error *err)
{
    drop_args(request);
    request->limits = *limits;
    int code = apply(request, program, input, err);
    if (code == 0 && program->options && program->options->bound)
        program->options->bound(program->options->policy, request);
    return code;
}

int program_request(const struct program *program, const struct program_input *input, cordon_request **request,
                    cordon_error *err)
{
    auto_request cordon_request *made = NULL;
    int code = program_read(program, &made, err);
    const struct limits limits = code == 0 ? made->limits : (struct limits){0};
    if (code == 0)
        code = program_give(program, input, &limits, made, err);
    if (code == 0)
        *request = take_ptr(&made);
    return code;
}

static int compile(struct program *program, cordon_engine *engine, struct runs *runs, cordon_error *err)
{
    const struct manifest *manifest = NULL;
    struct program_input nothing = {0};
    int code = program_request(program, &nothing, &program->source, err);
    if (code == 0)
        code = with_prefix(catalog_find(engine->catalog, program->source->language, &manifest, err), program->pointer,
                           err);
    if (code < 0 || !manifest || !manifest->compile)
        return code;
    cordon_run *run = NULL;
    cordon_result *result = NULL;
    code = run_compile(engine, program->source, NULL, &run, err);
    if (code < 0)
        return with_prefix(code, program->pointer, err);
    code = runs_wait(runs, 0, run, &result, err);
    program->compiled = run;
    if (code == 0 && cordon_result_status(result) != CORDON_STATUS_OK)
        program->failed = take_ptr(&result);
    cordon_result_free(result);
    return code;
}

int program_prepare(struct program *program, cordon_engine *engine, struct runs *runs, cordon_error *err)
{
    pthread_mutex_lock(&program->lock);
    if (!program->is_ready && !program->error.code)
        program->is_ready = compile(program, engine, runs, &program->error) == 0;
    int code = program->is_ready ? 0 : program->error.code;
    if (code < 0 && err)
        *err = program->error;
    pthread_mutex_unlock(&program->lock);
    return code;
}

int program_start(const struct program *program, cordon_engine *engine, const cordon_request *request,
                  const cordon_run_options *options, cordon_run **run, cordon_error *err)
{
    int code = program->compiled ? run_start_compiled(program->compiled, request, options, run, err)
                                 : cordon_run_start(engine, request, options, run, err);
    return with_prefix(code, program->pointer, err);
}
