/* Owns the shapes of single request fields: files, env, limits, mounts. Values go through the same setters as
 * everything else, so it decides nothing about them. Called by request_json.c. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "output/utf8.h"
#include "plan/request_json.h"
#include "plan/word.h"

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "an array", "a string", "a number",
                                        "a number",  "true",     "false",    "null"};
    return names[json_typeof(value)];
}

int json_wrong_type(const json_t *value, const char *pointer, const char *expected, cordon_error *err)
{
    return error_field(err, pointer, "%s is given; expected %s", type_name(value), expected);
}

/* A string that goes into a C string later: an embedded NUL would silently cut it. */
int json_read_text(const json_t *value, const char *pointer, const char **text, cordon_error *err)
{
    if (!json_is_string(value))
        return json_wrong_type(value, pointer, "a string", err);
    *text = json_string_value(value);
    if (strlen(*text) != json_string_length(value))
        return error_field(err, pointer, "the string holds a NUL character (\\u0000) after %zu bytes", strlen(*text));
    return 0;
}

int json_read_code(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    if (!json_is_string(value))
        return json_wrong_type(value, pointer, "a string", err);
    return cordon_request_set_code(request, json_string_value(value), json_string_length(value), err);
}

int json_read_stdin(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    if (!json_is_string(value))
        return json_wrong_type(value, pointer, "a string", err);
    return cordon_request_set_stdin(request, json_string_value(value), json_string_length(value), err);
}

int json_check_members(const json_t *object, const char *pointer, const char *const *names, size_t count,
                       cordon_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = !strcmp(names[i], key);
        if (!known)
            return word_unknown(err, word_pointer(pointer, key).text, "field", key, names, count);
    }
    return 0;
}

/* The bytes of a base64 string, freed by the caller. */
static int read_base64(const json_t *text, const char *pointer, void **bytes, size_t *length, cordon_error *err)
{
    bool bad = false;
    if (!json_is_string(text))
        return error_field(err, pointer, "base64 is %s; expected a string", text ? type_name(text) : "missing");
    *bytes = base64_decode(json_string_value(text), json_string_length(text), length, &bad);
    if (*bytes)
        return 0;
    return bad ? error_field(err, pointer, "the text is not base64 (RFC 4648, padded, no line breaks)")
               : error_nomem(err);
}

static int add_base64_file(cordon_request *request, const char *path, const json_t *text, const char *pointer,
                           cordon_error *err)
{
    auto_free void *bytes = NULL;
    size_t length;
    int failed = read_base64(text, pointer, &bytes, &length, err);
    return failed ? failed : cordon_request_add_file(request, path, bytes, length, err);
}

static int read_base64_file(cordon_request *request, const char *path, const json_t *value, const char *pointer,
                            cordon_error *err)
{
    static const char *const members[] = {"base64"};
    int failed = json_check_members(value, pointer, members, ARRAY_LEN(members), err);
    if (failed)
        return failed;
    return add_base64_file(request, path, json_object_get(value, "base64"), word_pointer(pointer, "base64").text, err);
}

/* A required string member. */
static int read_member(const json_t *object, const char *pointer, const char *name, const char **text,
                       cordon_error *err)
{
    const json_t *value = json_object_get(object, name);
    struct word_pointer at = word_pointer(pointer, name);
    if (!value)
        return error_field(err, at.text, "%s is missing; expected a string", name);
    return json_read_text(value, at.text, text, err);
}

/* A path that is no text comes as its bytes; `path` is then only what people are shown. */
static int read_path(const json_t *item, const char *pointer, char **path, cordon_error *err)
{
    const json_t *encoded = json_object_get(item, "path_base64");
    struct word_pointer at = word_pointer(pointer, encoded ? "path_base64" : "path");
    const char *text = NULL;
    size_t length = 0;
    int failed = 0;
    if (encoded)
        failed = read_base64(encoded, at.text, (void **)path, &length, err);
    else
        failed = read_member(item, pointer, "path", &text, err);
    if (!failed && !encoded)
        *path = strdup(text);
    if (!failed && !*path)
        return error_nomem(err);
    if (!failed && encoded && memchr(*path, '\0', length))
        return error_field(err, at.text, "the path holds a NUL byte");
    return failed;
}

/* A file as the result of another run has it. Its size and hash are the result's to tell: a caller may change the
 * content. */
static int read_result_file(cordon_request *request, const json_t *item, const char *pointer, cordon_error *err)
{
    static const char *const members[] = {"path", "content", "content_base64", "path_base64", "size", "sha256"};
    if (!json_is_object(item))
        return json_wrong_type(item, pointer, "an object of path and content", err);
    int failed = json_check_members(item, pointer, members, ARRAY_LEN(members), err);
    auto_free char *path = NULL;
    if (!failed)
        failed = read_path(item, pointer, &path, err);
    if (failed)
        return failed;
    const json_t *content = json_object_get(item, "content"), *encoded = json_object_get(item, "content_base64");
    if (!content == !encoded)
        return error_field(err, pointer, "the file has %s; expected content or content_base64",
                           content ? "both" : "no content");
    if (encoded)
        return add_base64_file(request, path, encoded, word_pointer(pointer, "content_base64").text, err);
    if (!json_is_string(content))
        return json_wrong_type(content, word_pointer(pointer, "content").text, "a string", err);
    return cordon_request_add_file(request, path, json_string_value(content), json_string_length(content), err);
}

static int read_result_files(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    size_t index;
    json_t *item;
    json_array_foreach(value, index, item)
    {
        int failed = read_result_file(request, item, word_pointer_index(pointer, index).text, err);
        if (failed)
            return failed;
    }
    return 0;
}

int json_read_files(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    if (json_is_array(value))
        return read_result_files(request, value, pointer, err);
    if (!json_is_object(value))
        return json_wrong_type(value, pointer, "an object of path and content, or a result's files", err);
    const char *path;
    json_t *content;
    json_object_foreach((json_t *)value, path, content)
    {
        struct word_pointer at = word_pointer(pointer, path);
        int failed;
        if (json_is_string(content))
            failed =
                cordon_request_add_file(request, path, json_string_value(content), json_string_length(content), err);
        else if (json_is_object(content))
            failed = read_base64_file(request, path, content, at.text, err);
        else
            failed = json_wrong_type(content, at.text, "a string or {\"base64\": \"...\"}", err);
        if (failed)
            return failed;
    }
    return 0;
}

static int read_flag(const json_t *object, const char *pointer, const char *name, bool *flag, cordon_error *err)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_boolean(value))
        return json_wrong_type(value, word_pointer(pointer, name).text, "true or false", err);
    *flag = json_is_true(value);
    return 0;
}

int json_read_env(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    static const char *const members[] = {"value", "secret"};
    if (!json_is_object(value))
        return json_wrong_type(value, pointer, "an object of name and value", err);
    const char *name, *text = "";
    json_t *item;
    json_object_foreach((json_t *)value, name, item)
    {
        struct word_pointer at = word_pointer(pointer, name);
        bool secret = false;
        int failed;
        if (json_is_object(item)) {
            failed = json_check_members(item, at.text, members, ARRAY_LEN(members), err);
            if (!failed)
                failed = read_member(item, at.text, "value", &text, err);
            if (!failed)
                failed = read_flag(item, at.text, "secret", &secret, err);
        } else if (json_is_string(item))
            failed = json_read_text(item, at.text, &text, err);
        else
            failed = json_wrong_type(item, at.text, "a string or {\"value\": \"...\", \"secret\": true}", err);
        if (!failed)
            failed = cordon_request_add_env(request, name, text, secret, err);
        if (failed)
            return failed;
    }
    return 0;
}

int json_read_limits(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    if (!json_is_object(value))
        return json_wrong_type(value, pointer, "an object of limits", err);
    const char *name, *text = "";
    json_t *item;
    json_object_foreach((json_t *)value, name, item)
    {
        struct word_pointer at = word_pointer(pointer, name);
        enum limit limit = limit_from_name(name);
        int failed;
        if (json_is_number(item) && limit != LIMIT_COUNT)
            failed = limit_set_number(limit, json_number_value(item), &request->limits, err);
        else if (json_is_string(item) || limit == LIMIT_COUNT) {
            failed = json_is_string(item) ? json_read_text(item, at.text, &text, err) : 0;
            if (!failed)
                failed = cordon_request_set_limit(request, name, text, err);
        } else
            failed = json_wrong_type(item, at.text, "a number or a string such as \"512m\" or \"5s\"", err);
        if (failed)
            return failed;
    }
    return 0;
}

/* "SRC:DST", "SRC:DST:ro" or "SRC:DST:rw"; the source may hold colons, the destination may not. */
static int add_mount_text(cordon_request *request, const char *text, const char *pointer, cordon_error *err)
{
    auto_free char *source = strdup(text);
    if (!source)
        return error_nomem(err);
    char *mode = strrchr(source, ':');
    bool writable = mode && !strcmp(mode, ":rw");
    if (writable || (mode && !strcmp(mode, ":ro")))
        *mode = '\0';
    char *destination = strrchr(source, ':');
    if (!destination)
        return error_field(err, pointer, "mount '%s' has no destination; expected source:destination[:rw]",
                           word_show(text).text);
    *destination++ = '\0';
    return cordon_request_add_mount(request, source, destination, writable, err);
}

int json_read_mounts(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    static const char *const members[] = {"source", "destination", "writable"};
    if (!json_is_array(value))
        return json_wrong_type(value, pointer, "an array of mounts", err);
    size_t index;
    json_t *item;
    json_array_foreach(value, index, item)
    {
        struct word_pointer at = word_pointer_index(pointer, index);
        const char *source = "", *destination = "";
        bool writable = false;
        int failed;
        if (json_is_string(item)) {
            failed = json_read_text(item, at.text, &source, err);
            if (!failed)
                failed = add_mount_text(request, source, at.text, err);
        } else if (json_is_object(item)) {
            failed = json_check_members(item, at.text, members, ARRAY_LEN(members), err);
            if (!failed)
                failed = read_member(item, at.text, "source", &source, err);
            if (!failed)
                failed = read_member(item, at.text, "destination", &destination, err);
            if (!failed)
                failed = read_flag(item, at.text, "writable", &writable, err);
            if (!failed)
                failed = cordon_request_add_mount(request, source, destination, writable, err);
        } else
            failed = json_wrong_type(item, at.text, "an object or \"source:destination[:rw]\"", err);
        if (failed)
            return failed;
    }
    return 0;
}

int json_read_sanitize(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    if (json_is_boolean(value))
        return cordon_request_add_sanitize(request, json_is_true(value) ? "secrets" : "none", err);
    if (json_is_string(value) && !strcmp(json_string_value(value), "all"))
        return cordon_request_add_sanitize(request, "all", err);
    if (!json_is_array(value) || !json_array_size(value))
        return json_wrong_type(value, pointer, "true, false, \"all\" or a list of rule names", err);
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        struct word_pointer at = word_pointer_index(pointer, i);
        const char *name = NULL;
        int failed = json_read_text(item, at.text, &name, err);
        if (!failed && (!strcmp(name, "none") || !strcmp(name, "secrets") || !strcmp(name, "all")))
            failed = error_field(err, at.text, "'%s' is no rule; expected names of rules", name);
        if (!failed)
            failed = cordon_request_add_sanitize(request, name, err);
        if (failed)
            return failed;
    }
    return 0;
}

/* What is in it is the judge's to read. */
int json_read_tests(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err)
{
    if (!json_is_object(value))
        return json_wrong_type(value, pointer, "an object", err);
    json_decref(request->tests);
    request->tests = json_incref((json_t *)value);
    request->owns_tests = false;
    return 0;
}
