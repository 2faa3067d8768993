/* Owns which files stand for a language's compiler, and what a result says of a step that was found in the cache. */
#include "engine/compile_step.h"

#include <stdlib.h>
#include <string.h>

/* A compile step may begin with a shell, so the file that tells its version counts as well. */
static const char *version_tool(const struct manifest *manifest, struct command *command)
{
    struct manifest_step step = {.argv = manifest->version, .argv_count = manifest->version_count};
    struct limits limits = {0};
    struct command_input input = {.entry = manifest->file, .limits = &limits};
    if (!manifest->version_count || command_build(&step, &input, command, NULL) < 0)
        return NULL;
    return environment_find(command->candidates);
}

int compile_step_key(const struct cordon_engine *engine, const struct prepared *prepared,
                     const struct prepared_step *step, struct compile_key *key)
{
    const struct manifest *manifest = prepared->manifest;
    if (!engine->compiled)
        return -1;
    struct command version = {0};
    const char *tools[] = {environment_find(step->plan.candidates), version_tool(manifest, &version), NULL};
    const char *own = prepared->request->tenant;
    struct compile_key_input input = {.tenant = *own ? own : compile_cache_tenant(engine->compiled),
                                      .language = manifest->id,
                                      .environment =
                                          prepared->request->environment ? prepared->request->environment : "host",
                                      .plan = &step->plan,
                                      .outputs = manifest->compile->outputs,
                                      .outputs_count = manifest->compile->outputs_count,
                                      .tools = tools,
                                      .markers = compile_key_markers};
    int code = compile_key_make(&input, key);
    command_free(&version);
    return code;
}

struct outcome *compile_step_find(const struct cordon_engine *engine, const struct compile_key *key,
                                  const struct limits *limits, struct collected *made)
{
    struct outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome || !compile_cache_find(engine->compiled, key, made, outcome)) {
        free(outcome);
        return NULL;
    }
    outcome->limits = *limits;
    return outcome;
}

static void *copy(const void *bytes, size_t length)
{
    char *made = malloc(length + 1);
    if (!made)
        return NULL;
    if (length)
        memcpy(made, bytes, length);
    made[length] = '\0';
    return made;
}

struct outcome *compile_step_again(const struct outcome *outcome)
{
    struct outcome *again = copy(outcome, sizeof *outcome);
    if (!again)
        return NULL;
    for (int i = 0; i < 2; i++)
        again->out[i] = copy(outcome->out[i], outcome->out_length[i]);
    again->denials = copy(outcome->denials, outcome->denial_count * sizeof *outcome->denials);
    if (again->out[0] && again->out[1] && again->denials)
        return again;
    outcome_free(again);
    free(again);
    return NULL;
}
