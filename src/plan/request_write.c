/* Writes what request_json.c reads. Called by whoever keeps a request for later. */
#include "plan/request_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/control.h"
#include "output/utf8.h"

json_t *request_content(const void *bytes, size_t length)
{
    const char *data = bytes ? bytes : "";
    if (utf8_valid(data, length))
        return json_stringn(data, length);
    size_t encoded_length;
    auto_free char *text = base64_encode(data, length, &encoded_length);
    json_t *object = text ? json_object() : NULL;
    if (object && json_object_set_new(object, "base64", json_stringn(text, encoded_length)) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *content(const struct bytes *bytes)
{
    return request_content(bytes->data, bytes->length);
}

static json_t *list(const struct strings *strings)
{
    json_t *array = json_array();
    for (size_t i = 0; i < strings->count; i++)
        json_array_append_new(array, json_string(strings->items[i]));
    return array;
}

static void add_text(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_string(text));
}

static void add_list(json_t *object, const char *name, const struct strings *strings)
{
    if (strings->count)
        json_object_set_new(object, name, list(strings));
}

/* A name that is no text cannot be a member's. */
static bool has_text_paths(const cordon_request *request)
{
    for (size_t i = 0; i < request->file_count; i++)
        if (!utf8_valid(request->files[i].path, strlen(request->files[i].path)))
            return false;
    return true;
}

static json_t *base64_string(const void *bytes, size_t length)
{
    size_t encoded_length;
    auto_free char *text = base64_encode(bytes ? bytes : "", length, &encoded_length);
    return text ? json_stringn(text, encoded_length) : NULL;
}

static json_t *file_list(const cordon_request *request)
{
    json_t *files = json_array();
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        json_array_append_new(files,
                              json_pack("{s:o, s:o}", "path_base64", base64_string(file->path, strlen(file->path)),
                                        "content_base64", base64_string(file->content.data, file->content.length)));
    }
    return files;
}

static void add_files(json_t *object, const cordon_request *request)
{
    if (!has_text_paths(request)) {
        json_object_set_new(object, "files", file_list(request));
        return;
    }
    json_t *files = json_object();
    for (size_t i = 0; i < request->file_count; i++)
        json_object_set_new(files, request->files[i].path, content(&request->files[i].content));
    json_object_set_new(object, "files", files);
}

static void add_env(json_t *object, const cordon_request *request)
{
    json_t *env = json_object();
    for (size_t i = 0; i < request->env_count; i++) {
        const struct request_env *row = &request->env[i];
        json_object_set_new(env, row->name,
                            row->secret ? json_pack("{s:n, s:b}", "value", "secret", 1) : json_string(row->value));
    }
    json_object_set_new(object, "env", env);
}

static void add_limits(json_t *object, const struct limits *limits)
{
    json_t *given = json_object();
    for (int i = 0; i < LIMIT_COUNT; i++) {
        int64_t value = limits->value[i];
        if (!(limits->given & (1U << i)))
            continue;
        json_object_set_new(given, limit_name((enum limit)i),
                            value == LIMIT_UNLIMITED ? json_string("unlimited")
                            : i == LIMIT_CPUS        ? json_real((double)value / 1000)
                                                     : json_integer(value));
    }
    if (json_object_size(given))
        json_object_set_new(object, "limits", given);
    else
        json_decref(given);
}

static void add_mounts(json_t *object, const cordon_request *request)
{
    json_t *mounts = json_array();
    for (size_t i = 0; i < request->mount_count; i++)
        json_array_append_new(mounts,
                              json_pack("{s:s, s:s, s:b}", "source", request->mounts[i].source, "destination",
                                        request->mounts[i].destination, "writable", request->mounts[i].writable));
    json_object_set_new(object, "mounts", mounts);
}

static void add_sanitize(json_t *object, const cordon_request *request)
{
    if (request->sanitize == SANITIZE_NAMED)
        json_object_set_new(object, "sanitize", list(&request->rules));
    else if (request->sanitize == SANITIZE_ALL)
        json_object_set_new(object, "sanitize", json_string("all"));
    else if (request->sanitize != SANITIZE_DEFAULT)
        json_object_set_new(object, "sanitize", json_boolean(request->sanitize == SANITIZE_SECRETS));
}

static void add_optional(json_t *object, uint32_t optional)
{
    json_t *controls = json_array();
    for (int i = 0; i < CONTROL_COUNT; i++)
        if (optional & CONTROL_BIT(i))
            json_array_append_new(controls, json_string(control_name((enum control)i)));
    if (json_array_size(controls))
        json_object_set_new(object, "optional", controls);
    else
        json_decref(controls);
}

json_t *request_to_object(const cordon_request *request)
{
    json_t *object = json_object();
    if (!object)
        return NULL;
    add_text(object, "language", request->language);
    if (request->has_code)
        json_object_set_new(object, "code", content(&request->code));
    if (request->file_count)
        add_files(object, request);
    add_text(object, "entry", request->entry);
    if (request->has_stdin)
        json_object_set_new(object, "stdin", content(&request->stdin_bytes));
    add_list(object, "args", &request->args);
    if (request->env_count)
        add_env(object, request);
    add_text(object, "profile", request->profile);
    add_limits(object, &request->limits);
    add_text(object, "isolation", request->isolation);
    add_text(object, "network", request->network);
    add_text(object, "environment", request->environment);
    if (request->mount_count)
        add_mounts(object, request);
    add_sanitize(object, request);
    add_list(object, "collect", &request->collect);
    if (request->collect_all)
        json_object_set_new(object, "collect_all", json_true());
    add_optional(object, request->optional);
    if (request->stop_on_output_limit)
        add_text(object, "on_output_limit", "stop");
    if (request->base64_output)
        add_text(object, "output_encoding", "base64");
    if (request->cold)
        json_object_set_new(object, "warm", json_false());
    if (request->tests)
        json_object_set(object, "tests", request->tests);
    if (request->pty)
        json_object_set_new(object, "pty", json_true());
    return object;
}
