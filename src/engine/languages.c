/* The list of languages as JSON, for `cordon languages` and the API. */
#include <jansson.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/language_proofs.h"

static json_t *strings_json(const char *const *items, unsigned count)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_string(items[i]));
    return list;
}

/* Whether the first command of a step exists in the environment. */
static bool has_command(const struct manifest *manifest, const struct manifest_step *step)
{
    struct limits limits = {0};
    char *no_sources[] = {NULL};
    struct command_input input = {.entry = manifest->file, .sources = no_sources, .limits = &limits};
    struct command command = {0};
    if (limits_complete(&limits, NULL, NULL) < 0 || command_build(step, &input, &command, NULL) < 0)
        return false;
    bool found = environment_find(command.candidates) != NULL;
    command_free(&command);
    return found;
}

/* A step may begin with a shell, so the command that tells the version counts too. */
bool language_is_installed(const struct manifest *manifest)
{
    const struct manifest_step version = {.argv = manifest->version, .argv_count = manifest->version_count};
    return has_command(manifest, manifest->run) && has_command(manifest, &version) &&
           (!manifest->compile || has_command(manifest, manifest->compile));
}

/* A proof for each language that has its commands; the others' are left empty. */
static struct proof *prove_all(cordon_engine *engine, const struct manifest *const *manifests, size_t count)
{
    struct proof *proofs = calloc(count + 1, sizeof *proofs);
    auto_free size_t *places = calloc(count + 1, sizeof *places);
    auto_free struct proof *wanted = calloc(count + 1, sizeof *wanted);
    size_t used = 0;
    for (size_t i = 0; proofs && places && wanted && i < count; i++)
        if (language_is_installed(manifests[i])) {
            wanted[used].manifest = manifests[i];
            places[used++] = i;
        }
    if (used)
        proofs_make(engine, wanted, used);
    for (size_t i = 0; i < used; i++)
        proofs[places[i]] = wanted[i];
    return proofs;
}

static json_t *language_json(cordon_engine *engine, const struct manifest *manifest, const struct proof *proof)
{
    bool installed = proof->manifest && proof->state != PROOF_FAILS;
    return json_pack("{s:s, s:s, s:s?, s:o, s:o, s:b, s:s?, s:o, s:b}", "id", manifest->id, "name", manifest->name,
                     "version", proof->manifest ? version_of(engine, manifest) : NULL, "aliases",
                     strings_json((const char *const *)manifest->aliases, manifest->aliases_count), "extensions",
                     strings_json((const char *const *)manifest->extensions, manifest->extensions_count), "installed",
                     installed, "problem", proof->problem, "packages",
                     strings_json((const char *const *)manifest->packages, manifest->packages_count), "compiled",
                     manifest->compile != NULL);
}

int cordon_language_of_file(cordon_engine *engine, const char *file, const char **id, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(file, err);
    REQUIRE(id, err);
    const struct manifest *manifest;
    int code = catalog_find_by_file(engine->catalog, file, &manifest, err);
    if (code == 0)
        *id = manifest->id;
    return code;
}

int cordon_languages(cordon_engine *engine, char **json, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(json, err);
    const struct manifest *const *manifests;
    size_t count;
    int code = catalog_all(engine->catalog, &manifests, &count, err);
    if (code < 0)
        return code;
    struct proof *proofs = prove_all(engine, manifests, count);
    if (!proofs)
        return error_nomem(err);
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, language_json(engine, manifests[i], &proofs[i]));
    proofs_free(proofs, count);
    json_t *object = json_pack("{s:o, s:n}", "items", items, "next_cursor");
    *json = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return *json ? 0 : error_nomem(err);
}
