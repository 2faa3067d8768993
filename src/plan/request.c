/* Owns the contents of a request: every setter checks what can be told from its own arguments, copies, and leaves the
 * request as it was on error. What only the whole request shows is in request_check.c. Never touches the system. */
#include "plan/request.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/control.h"
#include "base/error.h"
#include "plan/plan.h"
#include "plan/word.h"

/* Room for one more item; arrays grow by doubling at powers of two, so no capacity needs keeping. */
static void *grown(void *items, size_t count, size_t item_size)
{
    if (count & (count - 1))
        return items;
    return reallocarray(items, count ? count * 2 : 1, item_size);
}

#define GROW(items, count)                                                                                             \
    ({                                                                                                                 \
        void *grown_ = grown(items, count, sizeof *(items));                                                           \
        if (grown_)                                                                                                    \
            (items) = grown_;                                                                                          \
        grown_ != NULL;                                                                                                \
    })

cordon_request *cordon_request_new(void)
{
    return calloc(1, sizeof(cordon_request));
}

void cordon_request_free(cordon_request *request)
{
    if (!request)
        return;
    char *const texts[] = {request->language, request->code.data, request->entry,   request->stdin_bytes.data,
                           request->profile,  request->isolation, request->network, request->environment};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < request->file_count; i++) {
        free(request->files[i].path);
        free(request->files[i].content.data);
    }
    for (size_t i = 0; i < request->args.count; i++)
        free(request->args.items[i]);
    for (size_t i = 0; i < request->env_count; i++) {
        free(request->env[i].name);
        free(request->env[i].value);
    }
    for (size_t i = 0; i < request->mount_count; i++) {
        free(request->mounts[i].source);
        free(request->mounts[i].destination);
    }
    for (size_t i = 0; i < request->collect.count; i++)
        free(request->collect.items[i]);
    for (size_t i = 0; i < request->rules.count; i++)
        free(request->rules.items[i]);
    free(request->rules.items);
    free(request->files);
    free(request->args.items);
    free(request->env);
    free(request->mounts);
    free(request->collect.items);
    json_decref(request->tests);
    free(request);
}

static int set_text(char **slot, const char *text, cordon_error *err)
{
    char *copy = strdup(text);
    if (!copy)
        return error_nomem(err);
    free(*slot);
    *slot = copy;
    return 0;
}

static int add_text(struct strings *strings, const char *text, cordon_error *err)
{
    auto_free char *copy = strdup(text);
    if (!copy || !GROW(strings->items, strings->count))
        return error_nomem(err);
    strings->items[strings->count++] = take_ptr(&copy);
    return 0;
}

int request_has_room(const cordon_request *request, const char *field, size_t length, size_t replaced,
                     cordon_error *err)
{
    size_t held = request->content_bytes - replaced;
    if (length <= (size_t)REQUEST_BYTES_MAX - held)
        return 0;
    return error_field(err, field,
                       "%zu bytes here and %zu in the rest of the request are too many; expected at most %lld together",
                       length, held, (long long)REQUEST_BYTES_MAX);
}

static int copy_bytes(const void *bytes, size_t length, struct bytes *copy, cordon_error *err)
{
    char *data = malloc(length + 1);
    if (!data)
        return error_nomem(err);
    if (length)
        memcpy(data, bytes, length);
    data[length] = '\0';
    *copy = (struct bytes){data, length};
    return 0;
}

static int set_bytes(cordon_request *request, const char *field, struct bytes *slot, const void *bytes, size_t length,
                     cordon_error *err)
{
    struct bytes copy = {0};
    int failed = request_has_room(request, field, length, slot->length, err);
    if (!failed)
        failed = copy_bytes(bytes, length, &copy, err);
    if (failed)
        return failed;
    request->content_bytes += length - slot->length;
    free(slot->data);
    *slot = copy;
    return 0;
}

int cordon_request_set_language(cordon_request *request, const char *language, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(language, err);
    if (!*language)
        return error_field(err, "/language", "language is empty; expected a name such as python");
    return set_text(&request->language, language, err);
}

int cordon_request_set_code(cordon_request *request, const void *code, size_t length, cordon_error *err)
{
    REQUIRE(request, err);
    if (length)
        REQUIRE(code, err);
    int failed = set_bytes(request, "/code", &request->code, code, length, err);
    request->has_code = request->has_code || !failed;
    return failed;
}

int cordon_request_set_stdin(cordon_request *request, const void *bytes, size_t length, cordon_error *err)
{
    REQUIRE(request, err);
    if (length)
        REQUIRE(bytes, err);
    int failed = set_bytes(request, "/stdin", &request->stdin_bytes, bytes, length, err);
    request->has_stdin = request->has_stdin || !failed;
    return failed;
}

static int check_path(const char *field, const char *path, cordon_error *err)
{
    if (request_path_is_safe(path))
        return 0;
    return error_field(err, field,
                       "path '%s' does not stay beneath the work directory; expected a relative path without empty, "
                       "'.' or '..' components, at most 255 bytes each and 1024 in all",
                       word_show(path).text);
}

int cordon_request_add_file(cordon_request *request, const char *path, const void *content, size_t length,
                            cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(path, err);
    if (length)
        REQUIRE(content, err);
    struct word_pointer field = word_pointer("/files", path);
    if (request->file_count >= PLAN_FILE_MAX)
        return error_field(err, field.text, "too many files; expected at most %d", PLAN_FILE_MAX);
    int failed = check_path(field.text, path, err);
    if (!failed)
        failed = request_has_room(request, field.text, length, 0, err);
    if (failed)
        return failed;
    auto_free char *path_copy = strdup(path);
    if (!path_copy || !GROW(request->files, request->file_count))
        return error_nomem(err);
    struct bytes bytes;
    failed = copy_bytes(content, length, &bytes, err);
    if (failed)
        return failed;
    request->files[request->file_count++] = (struct request_file){take_ptr(&path_copy), bytes};
    request->content_bytes += length;
    return 0;
}

int cordon_request_set_entry(cordon_request *request, const char *path, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(path, err);
    int failed = check_path("/entry", path, err);
    return failed ? failed : set_text(&request->entry, path, err);
}

static int check_string(const cordon_request *request, const char *field, size_t length, cordon_error *err)
{
    if (length > REQUEST_STRING_MAX)
        return error_field(err, field, "%zu bytes are too many for one string; expected at most %zu", length,
                           REQUEST_STRING_MAX);
    if (length >= REQUEST_STRINGS_MAX - request->string_bytes)
        return error_field(err, field, "args and env are too long together; expected at most %zu bytes",
                           REQUEST_STRINGS_MAX);
    return 0;
}

int cordon_request_add_arg(cordon_request *request, const char *arg, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(arg, err);
    struct word_pointer field = word_pointer_index("/args", request->args.count);
    size_t length = strlen(arg);
    if (request->args.count >= REQUEST_ARGS_MAX)
        return error_field(err, field.text, "too many arguments; expected at most %d", REQUEST_ARGS_MAX);
    int failed = check_string(request, field.text, length, err);
    if (!failed)
        failed = add_text(&request->args, arg, err);
    if (!failed)
        request->string_bytes += length + 1;
    return failed;
}

static struct request_env *find_env(const cordon_request *request, const char *name)
{
    for (size_t i = 0; i < request->env_count; i++)
        if (!strcmp(request->env[i].name, name))
            return &request->env[i];
    return NULL;
}

int cordon_request_add_env(cordon_request *request, const char *name, const char *value, bool secret, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(name, err);
    REQUIRE(value, err);
    struct word_pointer field = word_pointer("/env", name);
    if (!*name)
        return error_field(err, field.text, "an environment variable has an empty name");
    if (strchr(name, '='))
        return error_field(err, field.text, "the environment variable '%s' has a '=' in its name",
                           word_show(name).text);
    size_t length = strlen(name) + 1 + strlen(value);
    int failed = check_string(request, field.text, length, err);
    if (failed)
        return failed;
    struct request_env *old = find_env(request, name);
    if (!old && request->env_count >= REQUEST_ENV_MAX)
        return error_field(err, field.text, "too many environment variables; expected at most %d", REQUEST_ENV_MAX);

    auto_free char *name_copy = strdup(name), *value_copy = strdup(value);
    if (!name_copy || !value_copy || (!old && !GROW(request->env, request->env_count)))
        return error_nomem(err);
    request->string_bytes += length + 1;
    if (!old) {
        request->env[request->env_count++] = (struct request_env){take_ptr(&name_copy), take_ptr(&value_copy), secret};
        return 0;
    }
    request->string_bytes -= strlen(name) + strlen(old->value) + 2;
    free(old->value);
    old->value = take_ptr(&value_copy);
    old->secret = secret;
    return 0;
}

int cordon_request_set_limit(cordon_request *request, const char *name, const char *value, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(name, err);
    REQUIRE(value, err);
    enum limit limit = limit_from_name(name);
    if (limit != LIMIT_COUNT)
        return limit_parse(limit, value, &request->limits, err);
    const char *names[LIMIT_COUNT];
    for (int i = 0; i < LIMIT_COUNT; i++)
        names[i] = limit_name((enum limit)i);
    return word_unknown(err, word_pointer("/limits", name).text, "limit", name, names, LIMIT_COUNT);
}

static int set_word(char **slot, const char *field, const char *word, cordon_error *err)
{
    int failed = request_check_word(field, word, err);
    return failed ? failed : set_text(slot, word, err);
}

int cordon_request_set_profile(cordon_request *request, const char *profile, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(profile, err);
    struct limits scratch = {0};
    int failed = limits_complete(&scratch, profile, err);
    return failed ? failed : set_text(&request->profile, profile, err);
}

int cordon_request_set_isolation(cordon_request *request, const char *isolation, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(isolation, err);
    return set_word(&request->isolation, "isolation", isolation, err);
}

int cordon_request_set_network(cordon_request *request, const char *network, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(network, err);
    return set_word(&request->network, "network", network, err);
}

int cordon_request_set_environment(cordon_request *request, const char *environment, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(environment, err);
    return set_word(&request->environment, "environment", environment, err);
}

static int check_new_mount(const cordon_request *request, const char *source, const char *destination,
                           cordon_error *err)
{
    struct word_pointer mount = word_pointer_index("/mounts", request->mount_count);
    struct word_pointer field = word_pointer(mount.text, "destination");
    if (request->mount_count >= PLAN_MOUNT_MAX)
        return error_field(err, mount.text, "too many mounts; expected at most %d", PLAN_MOUNT_MAX);
    if (!*source)
        return error_field(err, word_pointer(mount.text, "source").text, "the source of the mount is empty");
    const char *problem = mount_destination_problem(destination);
    if (problem)
        return error_field(err, field.text, "mount destination '%s' %s", word_show(destination).text, problem);
    for (size_t i = 0; i < request->mount_count; i++)
        if (!strcmp(request->mounts[i].destination, destination))
            return error_field(err, field.text, "mount destination '%s' is given twice", word_show(destination).text);
    return 0;
}

int cordon_request_add_mount(cordon_request *request, const char *source, const char *destination, bool writable,
                             cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(source, err);
    REQUIRE(destination, err);
    int failed = check_new_mount(request, source, destination, err);
    if (failed)
        return failed;
    auto_free char *source_copy = strdup(source), *destination_copy = strdup(destination);
    if (!source_copy || !destination_copy || !GROW(request->mounts, request->mount_count))
        return error_nomem(err);
    request->mounts[request->mount_count++] =
        (struct request_mount){take_ptr(&source_copy), take_ptr(&destination_copy), writable};
    return 0;
}

int cordon_request_add_collect(cordon_request *request, const char *glob, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(glob, err);
    struct word_pointer field = word_pointer_index("/collect", request->collect.count);
    if (request->collect.count >= REQUEST_COLLECT_MAX)
        return error_field(err, field.text, "too many globs; expected at most %d", REQUEST_COLLECT_MAX);
    int failed = check_path(field.text, glob, err);
    return failed ? failed : add_text(&request->collect, glob, err);
}

int cordon_request_add_sanitize(cordon_request *request, const char *what, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(what, err);
    static const struct {
        const char *word;
        enum sanitize choice;
    } words[] = {{"none", SANITIZE_NONE}, {"secrets", SANITIZE_SECRETS}, {"all", SANITIZE_ALL}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(words[i].word, what)) {
            request->sanitize = words[i].choice;
            return 0;
        }
    struct word_pointer field = word_pointer_index("/sanitize", request->rules.count);
    if (request->rules.count >= REQUEST_RULES_MAX)
        return error_field(err, field.text, "too many rules; expected at most %d", REQUEST_RULES_MAX);
    if (!*what || strlen(what) > 64)
        return error_field(err, field.text, "'%s' is no rule's name", word_show(what).text);
    request->sanitize = SANITIZE_NAMED;
    return add_text(&request->rules, what, err);
}

int cordon_request_add_optional(cordon_request *request, const char *control, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(control, err);
    enum control known = control_from_name(control);
    if (known != CONTROL_NONE) {
        request->optional |= CONTROL_BIT(known);
        return 0;
    }
    const char *names[CONTROL_COUNT];
    for (int i = 0; i < CONTROL_COUNT; i++)
        names[i] = control_name((enum control)i);
    return word_unknown(err, "/optional", "control", control, names, CONTROL_COUNT);
}

int cordon_request_set_warm(cordon_request *request, bool warm, cordon_error *err)
{
    REQUIRE(request, err);
    (void)err;
    request->cold = !warm;
    return 0;
}

int cordon_request_set_pty(cordon_request *request, bool pty, cordon_error *err)
{
    REQUIRE(request, err);
    (void)err;
    request->pty = pty;
    return 0;
}

int cordon_request_set_collect_all(cordon_request *request, bool all, cordon_error *err)
{
    REQUIRE(request, err);
    (void)err;
    request->collect_all = all;
    return 0;
}

int cordon_request_set_on_output_limit(cordon_request *request, const char *cut_or_stop, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(cut_or_stop, err);
    int failed = request_check_word("on_output_limit", cut_or_stop, err);
    if (!failed)
        request->stop_on_output_limit = !strcmp(cut_or_stop, "stop");
    return failed;
}

int cordon_request_set_output_encoding(cordon_request *request, const char *utf8_or_base64, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(utf8_or_base64, err);
    int failed = request_check_word("output_encoding", utf8_or_base64, err);
    if (!failed)
        request->base64_output = !strcmp(utf8_or_base64, "base64");
    return failed;
}
