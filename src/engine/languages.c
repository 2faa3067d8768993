/* The list of languages as JSON, for `cordon languages` and the API. */
#include <jansson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"

static json_t *strings_json(const char *const *items, unsigned count)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_string(items[i]));
    return list;
}

bool language_is_installed(const struct manifest *manifest)
{
    const struct manifest_step *step = manifest->compile ? manifest->compile : manifest->run;
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
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct manifest *manifest = manifests[i];
        bool installed = language_is_installed(manifest);
        const char *version = installed ? version_of(engine, manifest) : NULL;
        json_array_append_new(
            items,
            json_pack("{s:s, s:s, s:s?, s:o, s:o, s:b, s:o, s:b}", "id", manifest->id, "name", manifest->name,
                      "version", version, "aliases",
                      strings_json((const char *const *)manifest->aliases, manifest->aliases_count), "extensions",
                      strings_json((const char *const *)manifest->extensions, manifest->extensions_count), "installed",
                      installed, "packages",
                      strings_json((const char *const *)manifest->packages, manifest->packages_count), "compiled",
                      manifest->compile != NULL));
    }
    json_t *object = json_pack("{s:o, s:n}", "items", items, "next_cursor");
    *json = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return *json ? 0 : error_nomem(err);
}
