/* Owns the YAML form of manifests: the schema, and errors that say where a file departs from it. Must not know any
 * language by name. Called by the catalog and by the error analysis. */
#include "lang/manifest.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "lang/manifest_parts.h"
#include "plan/path.h"

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define LIST     (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(structure, member, flags)                                                                                 \
    CYAML_FIELD_STRING_PTR(#member, flags, struct structure, member, 0, CYAML_UNLIMITED)
#define GROUP(member) CYAML_FIELD_INT(#member, OPTIONAL, struct manifest_error, member)
#define STRINGS(structure, member, flags, minimum)                                                                     \
    CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER | (flags), struct structure, member, &text_value, minimum,        \
                         CYAML_UNLIMITED)
#define ROWS(structure, member, value)                                                                                 \
    CYAML_FIELD_SEQUENCE(#member, LIST, struct structure, member, &value, 0, CYAML_UNLIMITED)
#define STEP(member, flags) CYAML_FIELD_MAPPING_PTR(#member, flags, struct manifest, member, step_fields)

static const cyaml_schema_value_t text_value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t env_fields[] = {
    TEXT(manifest_env, name, CYAML_FLAG_DEFAULT),
    TEXT(manifest_env, value, CYAML_FLAG_DEFAULT),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t env_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_env, env_fields)};

static const cyaml_schema_field_t step_fields[] = {
    STRINGS(manifest_step, argv, CYAML_FLAG_DEFAULT, 1),
    ROWS(manifest_step, env, env_value),
    STRINGS(manifest_step, outputs, OPTIONAL, 0),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t tier_fields[] = {
    TEXT(manifest_tier, name, CYAML_FLAG_DEFAULT),
    TEXT(manifest_tier, when, OPTIONAL),
    STRINGS(manifest_tier, preload, OPTIONAL, 0),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t tier_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_tier, tier_fields)};

static const cyaml_schema_field_t warm_fields[] = {
    STRINGS(manifest_warm, argv, OPTIONAL, 0),
    ROWS(manifest_warm, env, env_value),
    TEXT(manifest_warm, bootstrap, CYAML_FLAG_DEFAULT),
    STRINGS(manifest_warm, zygote, OPTIONAL, 0),
    TEXT(manifest_warm, fork, OPTIONAL),
    TEXT(manifest_warm, check, OPTIONAL),
    STRINGS(manifest_warm, cold_env, OPTIONAL, 0),
    ROWS(manifest_warm, tiers, tier_value),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t prebuild_fields[] = {
    TEXT(manifest_prebuild, source, CYAML_FLAG_DEFAULT),
    STRINGS(manifest_prebuild, argv, CYAML_FLAG_DEFAULT, 1),
    ROWS(manifest_prebuild, env, env_value),
    TEXT(manifest_prebuild, from, CYAML_FLAG_DEFAULT),
    TEXT(manifest_prebuild, at, CYAML_FLAG_DEFAULT),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t manifest_fields[] = {
    TEXT(manifest, id, CYAML_FLAG_DEFAULT),
    TEXT(manifest, name, CYAML_FLAG_DEFAULT),
    STRINGS(manifest, aliases, OPTIONAL, 0),
    STRINGS(manifest, extensions, CYAML_FLAG_DEFAULT, 1),
    STRINGS(manifest, packages, OPTIONAL, 0),
    TEXT(manifest, file, CYAML_FLAG_DEFAULT),
    STRINGS(manifest, version, CYAML_FLAG_DEFAULT, 1),
    STRINGS(manifest, etc, OPTIONAL, 0),
    STEP(compile, OPTIONAL),
    CYAML_FIELD_MAPPING_PTR("prebuild", OPTIONAL, struct manifest, prebuild, prebuild_fields),
    STEP(run, CYAML_FLAG_DEFAULT),
    STEP(run_code, OPTIONAL),
    CYAML_FIELD_BOOL("value", OPTIONAL, struct manifest, value),
    CYAML_FIELD_MAPPING_PTR("warm", OPTIONAL, struct manifest, warm, warm_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t manifest_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct manifest, manifest_fields)};

static const cyaml_schema_field_t error_fields[] = {
    TEXT(manifest_error, match, CYAML_FLAG_DEFAULT),
    GROUP(type),
    GROUP(message),
    GROUP(file),
    GROUP(line),
    GROUP(column),
    CYAML_FIELD_BOOL("last", OPTIONAL, struct manifest_error, last),
    TEXT(manifest_error, fixed_type, OPTIONAL),
    TEXT(manifest_error, category, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t error_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_error, error_fields)};

static const cyaml_schema_field_t category_fields[] = {
    TEXT(manifest_category, type, CYAML_FLAG_DEFAULT),
    TEXT(manifest_category, category, CYAML_FLAG_DEFAULT),
    TEXT(manifest_category, hint, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t category_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_category, category_fields)};

static const cyaml_schema_field_t example_fields[] = {
    TEXT(manifest_example, name, CYAML_FLAG_DEFAULT),
    TEXT(manifest_example, code, CYAML_FLAG_DEFAULT),
    TEXT(manifest_example, input, OPTIONAL),
    TEXT(manifest_example, output, CYAML_FLAG_DEFAULT),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t example_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_example, example_fields)};

static const cyaml_schema_field_t package_fields[] = {
    TEXT(manifest_package, module, CYAML_FLAG_DEFAULT),
    TEXT(manifest_package, package, CYAML_FLAG_DEFAULT),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t package_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_package, package_fields)};

static const cyaml_schema_field_t notes_fields[] = {
    ROWS(manifest_notes, errors, error_value),
    ROWS(manifest_notes, categories, category_value),
    ROWS(manifest_notes, examples, example_value),
    STRINGS(manifest_notes, modules, OPTIONAL, 0),
    TEXT(manifest_notes, module_package, OPTIONAL),
    ROWS(manifest_notes, module_packages, package_value),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t notes_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct manifest_notes, notes_fields)};

/* libcyaml tells an error as several log lines: what is wrong, then where, from the inside out. */
struct complaint {
    char what[160];
    char where[64]; /* the innermost mapping or sequence */
    unsigned line, column;
};

__attribute__((format(printf, 3, 0))) static void note_complaint(cyaml_log_t level, void *context, const char *format,
                                                                 va_list args)
{
    struct complaint *complaint = context;
    (void)level;
    char text[256];
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    const char *body = text;
    if (strncmp(body, "Load: ", 6) == 0)
        body += 6;
    unsigned line, column;
    const char *place = strstr(body, "(line: ");
    if (place && sscanf(place, "(line: %u, column: %u)", &line, &column) == 2) {
        if (complaint->line)
            return;
        complaint->line = line;
        complaint->column = column;
        body += strspn(body, " ");
        while (place > body && place[-1] == ' ')
            place--;
        snprintf(complaint->where, sizeof complaint->where, " (%.*s)", (int)(place - body), body);
    } else if (!complaint->what[0] && strncmp(body, "Backtrace", 9) != 0)
        snprintf(complaint->what, sizeof complaint->what, "%.159s", body);
}

static cyaml_config_t config(struct complaint *complaint)
{
    return (cyaml_config_t){
        .log_fn = complaint ? note_complaint : NULL,
        .log_ctx = complaint,
        .mem_fn = cyaml_mem,
        .log_level = CYAML_LOG_ERROR,
    };
}

static const char *known_keys(const cyaml_schema_value_t *schema, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "the keys are");
    for (const cyaml_schema_field_t *field = schema->mapping.fields; field->key && used < size; field++)
        used += (size_t)snprintf(text + used, size - used, " %s%s", field->key,
                                 field->value.flags & CYAML_FLAG_OPTIONAL ? " (optional)" : "");
    return text;
}

static int load(const char *path, const cyaml_schema_value_t *schema, void **value, cordon_error *err)
{
    auto_free char *text = NULL;
    size_t length = 0;
    int rc = file_read(path, MANIFEST_BYTES_MAX, "manifest", &text, &length, err);
    if (rc < 0)
        return rc;

    struct complaint complaint = {0};
    cyaml_config_t cfg = config(&complaint);
    cyaml_err_t result = cyaml_load_data((const uint8_t *)text, length, &cfg, schema, value, NULL);
    if (result == CYAML_OK && *value)
        return 0;
    if (result == CYAML_ERR_OOM)
        return error_nomem(err);
    error_set(err, CORDON_EINVAL, "manifest", "%s:%u:%u: %s%s", path, complaint.line, complaint.column,
              complaint.what[0] ? complaint.what : "the file is empty", complaint.where);
    error_hint(err, "%s", known_keys(schema, (char[320]){0}, 320));
    return CORDON_EINVAL;
}

/* The part of the path that must equal the id, so that a lookup by id needs to open one file only. */
static const char *file_stem(const char *path, size_t *length)
{
    const char *slash = strrchr(path, '/');
    const char *stem = slash ? slash + 1 : path;
    const char *dot = strrchr(stem, '.');
    *length = dot ? (size_t)(dot - stem) : strlen(stem);
    return stem;
}

/* libcyaml counts its lists; plans want them to end with NULL as well. The allocator is the one cyaml_mem uses. */
static bool terminate(const char ***list, unsigned count)
{
    const char **longer = realloc(*list, (count + 1) * sizeof *longer);
    if (!longer)
        return false;
    longer[count] = NULL;
    *list = longer;
    return true;
}

static bool terminate_step(struct manifest_step *step)
{
    return !step || (terminate(&step->argv, step->argv_count) && terminate(&step->outputs, step->outputs_count));
}

/* What a `warm` without tiers means. The allocator is the one cyaml_mem uses, which frees them. */
static bool default_tier(struct manifest_warm *warm)
{
    if (warm->tiers_count)
        return true;
    free(warm->tiers);
    warm->tiers = calloc(1, sizeof *warm->tiers);
    if (!warm->tiers)
        return false;
    warm->tiers_count = 1;
    warm->tiers->name = strdup("base");
    return warm->tiers->name;
}

static bool terminate_warm(struct manifest_warm *warm)
{
    if (!warm)
        return true;
    if (!default_tier(warm) || !terminate(&warm->argv, warm->argv_count) ||
        !terminate(&warm->zygote, warm->zygote_count) || !terminate(&warm->cold_env, warm->cold_env_count))
        return false;
    for (unsigned i = 0; i < warm->tiers_count; i++)
        if (!terminate(&warm->tiers[i].preload, warm->tiers[i].preload_count))
            return false;
    return true;
}

static bool terminate_lists(struct manifest *manifest)
{
    return terminate(&manifest->aliases, manifest->aliases_count) &&
           terminate(&manifest->extensions, manifest->extensions_count) &&
           terminate(&manifest->packages, manifest->packages_count) &&
           terminate(&manifest->version, manifest->version_count) && terminate(&manifest->etc, manifest->etc_count) &&
           terminate_step(manifest->compile) && terminate_step(manifest->run) && terminate_step(manifest->run_code) &&
           terminate_warm(manifest->warm) &&
           (!manifest->prebuild || terminate(&manifest->prebuild->argv, manifest->prebuild->argv_count));
}

static bool is_file_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

/* What the schema cannot say. */
static int check_prebuild(const struct manifest *manifest, cordon_error *err)
{
    const struct manifest_prebuild *prebuild = manifest->prebuild;
    if (!prebuild)
        return 0;
    const char *wrong = NULL;
    if (!manifest->compile)
        wrong = "a language that is not compiled has nothing to prebuild";
    else if (!is_file_name(prebuild->source))
        wrong = "source is not the name of a file in warm/";
    else if (!is_file_name(prebuild->from))
        wrong = "from is not the name of a directory";
    else if (strncmp(prebuild->at, "/tmp/", 5) != 0 || !request_path_is_safe(prebuild->at + 5))
        wrong = "at is not beneath /tmp";
    return wrong ? error_set(err, CORDON_EINVAL, "manifest", "%s: prebuild: %s", manifest->path, wrong) : 0;
}

static int check_warm(const struct manifest *manifest, cordon_error *err)
{
    const struct manifest_warm *warm = manifest->warm;
    if (!warm)
        return 0;
    if (manifest->compile)
        return error_set(err, CORDON_EINVAL, "manifest",
                         "%s: warm: a language that is compiled cannot wait for its code", manifest->path);
    static const char *const fields[] = {"bootstrap", "fork", "check"};
    const char *const names[] = {warm->bootstrap, warm->fork, warm->check};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (names[i] && !is_file_name(names[i]))
            return error_set(err, CORDON_EINVAL, "manifest",
                             "%s: warm: %s is '%s', expected the name of a file in warm/", manifest->path, fields[i],
                             names[i]);
    bool starts = warm->argv_count > 0;
    if (!starts && !warm->zygote_count)
        return error_set(err, CORDON_EINVAL, "manifest", "%s: warm: there is neither an argv nor a zygote",
                         manifest->path);
    const char **argv = starts ? warm->argv : warm->zygote;
    for (; *argv; argv++)
        if (strstr(*argv, "{bootstrap}"))
            return 0;
    return error_set(err, CORDON_EINVAL, "manifest", "%s: warm: %s has no {bootstrap}", manifest->path,
                     starts ? "argv" : "zygote");
}

int manifest_load(const char *path, struct manifest **manifest, cordon_error *err)
{
    void *value = NULL;
    int rc = load(path, &manifest_schema, &value, err);
    if (rc < 0)
        return rc;
    struct manifest *loaded = value;
    loaded->path = strdup(path);
    if (!loaded->path || !terminate_lists(loaded)) {
        manifest_free(loaded);
        return error_nomem(err);
    }
    size_t length;
    const char *stem = file_stem(path, &length);
    if (strlen(loaded->id) != length || strncmp(loaded->id, stem, length) != 0) {
        rc = error_set(err, CORDON_EINVAL, "manifest", "%s: id is '%s', expected the file's name '%.*s'", path,
                       loaded->id, (int)length, stem);
        manifest_free(loaded);
        return rc;
    }
    rc = check_warm(loaded, err);
    if (rc == 0)
        rc = check_prebuild(loaded, err);
    if (rc == 0 && !request_path_is_safe(loaded->file))
        rc = error_set(err, CORDON_EINVAL, "manifest", "%s: file is '%s', expected a name beneath the work directory",
                       path, loaded->file);
    if (rc < 0) {
        manifest_free(loaded);
        return rc;
    }
    *manifest = loaded;
    return 0;
}

static void notes_free(struct manifest_notes *notes)
{
    cyaml_config_t cfg = config(NULL);
    cyaml_free(&cfg, &notes_schema, notes, 0);
}

void manifest_free(struct manifest *manifest)
{
    if (!manifest)
        return;
    notes_free(manifest->notes);
    manifest_free_late(manifest);
    free(manifest->path);
    cyaml_config_t cfg = config(NULL);
    cyaml_free(&cfg, &manifest_schema, manifest, 0);
}

int manifest_parse_notes(const char *path, struct manifest_notes **notes, cordon_error *err)
{
    cordon_error found;
    void *value = NULL;
    int rc = load(path, &notes_schema, &value, &found);
    if (rc == CORDON_ESYSTEM && found.sys_errno == ENOENT) {
        cyaml_config_t cfg = config(NULL);
        value = cfg.mem_fn(cfg.mem_ctx, NULL, sizeof **notes);
        if (!value)
            return error_nomem(err);
        memset(value, 0, sizeof **notes);
    } else if (rc < 0) {
        if (err)
            *err = found;
        return rc;
    }
    *notes = value;
    return 0;
}
