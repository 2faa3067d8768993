/* Owns the public entry to the judge: a request that was built with setters becomes the JSON that the judge reads. Must
 * not judge anything itself. */
#include <cordon/judge.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/result_read.h"
#include "judge/judge.h"
#include "output/utf8.h"
#include "plan/request_write.h"
#include "plan/word.h"

static int check_text(const char *text, const char *field, cordon_error *err)
{
    if (!text || utf8_valid(text, strlen(text)))
        return 0;
    return error_field(err, field, "the text is not UTF-8, which requests with tests must be");
}

static int check_texts(const struct strings *strings, const char *field, cordon_error *err)
{
    int code = 0;
    for (size_t i = 0; i < strings->count && code == 0; i++)
        code = check_text(strings->items[i], word_pointer_index(field, i).text, err);
    return code;
}

/* JSON cannot carry a name or an argument in another encoding, and leaving it out would run another program. */
static int check_encoding(const cordon_request *request, cordon_error *err)
{
    int code = check_text(request->language, "/language", err);
    if (code == 0)
        code = check_text(request->entry, "/entry", err);
    if (code == 0)
        code = check_texts(&request->args, "/args", err);
    if (code == 0)
        code = check_texts(&request->collect, "/collect", err);
    if (code == 0)
        code = check_texts(&request->rules, "/sanitize", err);
    for (size_t i = 0; i < request->file_count && code == 0; i++)
        code = check_text(request->files[i].path, "/files", err);
    for (size_t i = 0; i < request->mount_count && code == 0; i++) {
        code = check_text(request->mounts[i].source, word_pointer_index("/mounts", i).text, err);
        if (code == 0)
            code = check_text(request->mounts[i].destination, word_pointer_index("/mounts", i).text, err);
    }
    for (size_t i = 0; i < request->env_count && code == 0; i++) {
        code = check_text(request->env[i].name, "/env", err);
        if (code == 0)
            code = check_text(request->env[i].value, word_pointer("/env", request->env[i].name).text, err);
    }
    return code;
}

/* A request that is kept has no secrets; one that is run needs them. */
static int put_secrets(json_t *object, const cordon_request *request)
{
    const json_t *env = json_object_get(object, "env");
    for (size_t i = 0; i < request->env_count; i++) {
        const struct request_env *one = &request->env[i];
        if (one->secret && json_object_set_new(json_object_get(env, one->name), "value", json_string(one->value)) < 0)
            return -1;
    }
    return 0;
}

static void on_case(void *context, size_t index, size_t total, const json_t *row)
{
    const cordon_judge_options *options = context;
    cordon_test test;
    if (!options->on_test)
        return;
    result_test_read(row, &test);
    options->on_test(options->context, index, total, &test);
}

static int go_on(void *context)
{
    const cordon_judge_options *options = context;
    return options->go_on(options->context);
}

int cordon_judge(cordon_engine *engine, const cordon_request *request, const cordon_judge_options *options,
                 cordon_result **result, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(request, err);
    REQUIRE(result, err);
    cordon_judge_options own = CORDON_JUDGE_OPTIONS_INIT;
    if (!engine || !request)
        return error_set(err, CORDON_EINVAL, "judge", "the %s is NULL", engine ? "request" : "engine");
    if (options && options->struct_size < sizeof own)
        return error_set(err, CORDON_EINVAL, "judge", "struct_size of the options is %zu, expected %zu",
                         options->struct_size, sizeof own);
    if (options)
        own = *options;
    int code = check_encoding(request, err);
    if (code < 0)
        return code;
    json_t *object = request_to_object(request);
    struct judge_options inner = {
        .parallel = own.parallel,
        .on_case = on_case,
        .go_on = own.go_on ? go_on : NULL,
        .context = &own,
        .filter = own.filter,
    };
    code = object && put_secrets(object, request) == 0 ? judge_result(engine, object, &inner, result, err)
                                                       : error_nomem(err);
    json_decref(object);
    return code;
}
