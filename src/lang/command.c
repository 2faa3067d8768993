/* Owns how a step of a manifest becomes a command: the placeholders, the environment and where argv[0] may lie. Pure;
 * it never looks at the caller's environment or at the file system. Called when a run is prepared. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "lang/manifest.h"

#define WORK_DIRECTORY "/work"

static const char *const search_path[] = {"/usr/local/bin", "/usr/bin", "/bin"};

static const struct manifest_env base_env[] = {
    {"HOME", WORK_DIRECTORY}, {"PATH", "/etc/cordon/bin:/usr/local/bin:/usr/bin:/bin"},
    {"LANG", "C.UTF-8"},      {"TZ", "UTC"},
    {"TMPDIR", "/tmp"},       {"USER", "cordon"},
    {"LOGNAME", "cordon"},    {"SHELL", "/bin/bash"},
    {"HOSTNAME", "cordon"},
};

/* A growing NULL-terminated array of owned strings; like a buf it fails once and is checked at the end. */
struct list {
    char **items;
    size_t count;
    bool failed;
};

static void list_free(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

#define auto_list __attribute__((cleanup(list_free)))

/* Takes `text`; NULL marks the list as failed. */
static void list_take(struct list *list, char *text)
{
    char **items = realloc(list->items, (list->count + 2) * sizeof *items);
    if (items)
        list->items = items;
    if (!items || !text) {
        free(text);
        list->failed = true;
        return;
    }
    items[list->count++] = text;
    items[list->count] = NULL;
}

static void list_add(struct list *list, const char *text)
{
    list_take(list, strdup(text));
}

enum {
    VALUE_ENTRY,
    VALUE_MEMORY_MB,
    VALUE_HEAP_MB,
    VALUE_MEMORY_BYTES,
    VALUE_CPUS,
    VALUE_BOOTSTRAP,
    VALUE_PRELOAD,
    VALUE_FORK,
    VALUE_LIBRARY,
    VALUE_COUNT
};

static const char *const placeholders[VALUE_COUNT] = {
    [VALUE_ENTRY] = "{entry}",     [VALUE_MEMORY_MB] = "{memory_mb}",
    [VALUE_HEAP_MB] = "{heap_mb}", [VALUE_MEMORY_BYTES] = "{memory_bytes}",
    [VALUE_CPUS] = "{cpus}",       [VALUE_BOOTSTRAP] = "{bootstrap}",
    [VALUE_PRELOAD] = "{preload}", [VALUE_FORK] = "{fork}",
    [VALUE_LIBRARY] = "{library}",
};

struct values {
    const char *text[VALUE_COUNT]; /* NULL: no placeholder in this command */
    char *entry;                   /* owned */
    char numbers[VALUE_COUNT][24];
};

/* A name with an extension that begins like a word is no option ("-c"), no list of options ("@names"), no standard
 * input
 * ("-") and no command of an interpreter ("inspect"), and stays as it is in what programs and compilers say. */
char *command_file(const char *path)
{
    char *text = NULL;
    bool is_plain = (isalnum((unsigned char)*path) || *path == '_') && strchr(path, '.');
    if (is_plain)
        return strdup(path);
    return asprintf(&text, "./%s", path) < 0 ? NULL : text;
}

static void cleanup_values(struct values *values)
{
    free(values->entry);
}
#define auto_values __attribute__((cleanup(cleanup_values)))

static void set_number(struct values *values, int which, int64_t number)
{
    snprintf(values->numbers[which], sizeof values->numbers[which], "%lld", (long long)number);
    values->text[which] = values->numbers[which];
}

static int values_fill(struct values *values, const struct command_input *input, cordon_error *err)
{
    int64_t memory = input->limits->value[LIMIT_MEMORY_BYTES];
    int64_t cpus = input->limits->value[LIMIT_CPUS];
    /* Without a limit a runtime is told the machine's own size, which is what it would have found by itself. */
    if (memory == LIMIT_UNLIMITED)
        memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t whole_cpus = cpus == LIMIT_UNLIMITED ? sysconf(_SC_NPROCESSORS_ONLN) : cpus / 1000 + (cpus % 1000 != 0);
    int64_t mib = memory >> 20;

    *values = (struct values){0};
    values->entry = input->entry ? command_file(input->entry) : strdup("");
    if (!values->entry)
        return error_nomem(err);
    values->text[VALUE_ENTRY] = values->entry;
    set_number(values, VALUE_MEMORY_MB, mib > 0 ? mib : 1);
    /* The rest is for stacks, code and buffers outside the heap. */
    set_number(values, VALUE_HEAP_MB, mib * 3 / 4 > 0 ? mib * 3 / 4 : 1);
    set_number(values, VALUE_MEMORY_BYTES, memory);
    set_number(values, VALUE_CPUS, whole_cpus > 0 ? whole_cpus : 1);
    return 0;
}

/* Anything in braces that is not a placeholder stays as it is: templates hold program text too. */
static char *expand(const char *template, const struct values *values)
{
    struct buf out = {0};
    buf_puts(&out, "");
    while (*template) {
        size_t plain = strcspn(template, "{");
        buf_append(&out, template, plain);
        template += plain;
        if (!*template)
            break;
        size_t length = 1;
        const char *with = "{";
        for (int i = 0; i < VALUE_COUNT; i++) {
            size_t name = strlen(placeholders[i]);
            if (values->text[i] && strncmp(template, placeholders[i], name) == 0) {
                length = name;
                with = values->text[i];
                break;
            }
        }
        buf_puts(&out, with);
        template += length;
    }
    if (out.failed)
        buf_free(&out);
    return out.data;
}

static void build_argv(struct list *argv, const char *const *templates, unsigned count,
                       const struct command_input *input, const struct values *values)
{
    for (unsigned i = 0; i < count; i++) {
        const char *template = templates[i];
        if (strcmp(template, "{args}") == 0) {
            for (size_t n = 0; input->args && n < input->args->count; n++)
                list_add(argv, input->args->items[n]);
        } else if (strcmp(template, "{sources}") == 0) {
            for (char *const *source = input->sources; source && *source; source++)
                list_take(argv, command_file(*source));
        } else
            list_take(argv, expand(template, values));
    }
}

/* A name occurs once: some programs read the first of two, others the last. */
static void set_env(struct list *env, const char *name, const char *value)
{
    char *text = NULL;
    if (asprintf(&text, "%s=%s", name, value) < 0) {
        env->failed = true;
        return;
    }
    size_t length = strlen(name) + 1;
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], text, length) == 0) {
            free(env->items[i]);
            env->items[i] = text;
            return;
        }
    list_take(env, text);
}

static void base_variables(struct list *env)
{
    for (size_t i = 0; i < ARRAY_LEN(base_env); i++)
        set_env(env, base_env[i].name, base_env[i].value);
}

static void manifest_variables(struct list *env, const struct manifest_env *rows, unsigned count,
                               const struct values *values)
{
    for (unsigned i = 0; i < count; i++) {
        auto_free char *value = expand(rows[i].value, values);
        if (value)
            set_env(env, rows[i].name, value);
        else
            env->failed = true;
    }
}

static void build_candidates(struct list *candidates, const char *name)
{
    char *text = NULL;
    if (name[0] == '/') {
        list_add(candidates, name);
    } else if (strchr(name, '/')) {
        while (strncmp(name, "./", 2) == 0)
            name += 2;
        list_take(candidates, asprintf(&text, WORK_DIRECTORY "/%s", name) < 0 ? NULL : text);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(search_path); i++)
            list_take(candidates, asprintf(&text, "%s/%s", search_path[i], name) < 0 ? NULL : text);
    }
}

/* Takes both lists on success. */
static int complete(struct list *argv, struct list *env, struct command *command, cordon_error *err)
{
    auto_list struct list candidates = {0};
    if (argv->count && !argv->failed)
        build_candidates(&candidates, argv->items[0]);
    if (argv->failed || env->failed || candidates.failed)
        return error_nomem(err);
    if (!argv->count || !argv->items[0][0])
        return error_set(err, CORDON_EINVAL, "command", "the manifest's command is empty");
    command->argv = argv->items;
    command->envp = env->items;
    command->candidates = candidates.items;
    *argv = *env = candidates = (struct list){0};
    return 0;
}

int command_build(const struct manifest_step *step, const struct command_input *input, struct command *command,
                  cordon_error *err)
{
    auto_list struct list argv = {0}, env = {0};
    auto_values struct values values = {0};
    int failed = values_fill(&values, input, err);
    if (failed)
        return failed;
    build_argv(&argv, step->argv, step->argv_count, input, &values);
    base_variables(&env);
    manifest_variables(&env, step->env, step->env_count, &values);
    for (size_t i = 0; i < input->env_count; i++)
        set_env(&env, input->env[i].name, input->env[i].value);
    return complete(&argv, &env, command, err);
}

static int build_waiting(const struct manifest *manifest, const struct manifest_tier *tier,
                         const struct command_input *input, const char *library, struct command *command,
                         cordon_error *err)
{
    auto_list struct list argv = {0}, env = {0};
    auto_buf struct buf preload = {0};
    const struct manifest_warm *warm = manifest->warm;
    auto_values struct values values = {0};
    int rc = values_fill(&values, input, err);
    if (rc < 0)
        return rc;
    values.text[VALUE_ENTRY] = manifest->file;
    rc = manifest_bootstrap(manifest, &values.text[VALUE_BOOTSTRAP], err);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < tier->preload_count; i++)
        buf_printf(&preload, "%s%s", i ? "," : "", tier->preload[i]);
    if (preload.failed)
        return error_nomem(err);
    values.text[VALUE_PRELOAD] = buf_text(&preload);
    values.text[VALUE_FORK] = library ? warm->fork_text : NULL;
    values.text[VALUE_LIBRARY] = library;

    build_argv(&argv, library ? warm->zygote : warm->argv, library ? warm->zygote_count : warm->argv_count,
               &(struct command_input){0}, &values);
    base_variables(&env);
    manifest_variables(&env, manifest->run->env, manifest->run->env_count, &values);
    manifest_variables(&env, warm->env, warm->env_count, &values);
    return complete(&argv, &env, command, err);
}

int command_build_warm(const struct manifest *manifest, const struct manifest_tier *tier,
                       const struct command_input *input, struct command *command, cordon_error *err)
{
    return build_waiting(manifest, tier, input, NULL, command, err);
}

int command_build_zygote(const struct manifest *manifest, const struct manifest_tier *tier,
                         const struct command_input *input, const char *library, struct command *command,
                         cordon_error *err)
{
    return build_waiting(manifest, tier, input, library, command, err);
}

static bool tells(const struct manifest *manifest, const char *placeholder)
{
    const struct manifest_warm *warm = manifest->warm;
    for (unsigned i = 0; i < warm->argv_count; i++)
        if (strstr(warm->argv[i], placeholder))
            return true;
    for (unsigned i = 0; i < warm->env_count; i++)
        if (strstr(warm->env[i].value, placeholder))
            return true;
    for (unsigned i = 0; i < manifest->run->env_count; i++)
        if (strstr(manifest->run->env[i].value, placeholder))
            return true;
    return false;
}

bool command_tells_memory(const struct manifest *manifest)
{
    return tells(manifest, placeholders[VALUE_HEAP_MB]) || tells(manifest, placeholders[VALUE_MEMORY_MB]) ||
           tells(manifest, placeholders[VALUE_MEMORY_BYTES]);
}

bool command_tells_cpus(const struct manifest *manifest)
{
    return tells(manifest, placeholders[VALUE_CPUS]);
}

static void strings_free(char **items)
{
    for (char **item = items; item && *item; item++)
        free(*item);
    free(items);
}

void command_free(struct command *command)
{
    strings_free(command->argv);
    strings_free(command->envp);
    strings_free(command->candidates);
    *command = (struct command){0};
}
