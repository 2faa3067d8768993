/* Owns the JSON form of a request: its bounds, its fields by name, and where in the document an error lies. Must not
 * parse before the cost of parsing is bounded. Called by anyone who has a request as text. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "plan/request_json.h"
#include "plan/word.h"

/* Base64 and escapes make the text larger than what it carries. */
#define JSON_BYTES_MAX ((size_t)REQUEST_BYTES_MAX * 2)
#define JSON_DEPTH_MAX 16
/* A parsed value takes dozens of bytes where its text may take two, so values are counted before they are parsed. */
#define JSON_VALUES_MAX 100000

typedef int text_setter(cordon_request *request, const char *text, cordon_error *err);
typedef int flag_setter(cordon_request *request, bool flag, cordon_error *err);

static void cleanup_json(json_t **json)
{
    json_decref(*json);
}

static void cleanup_request(cordon_request **request)
{
    cordon_request_free(*request);
}

static int set_text(cordon_request *request, const json_t *value, const char *pointer, text_setter *set,
                    cordon_error *err)
{
    const char *text;
    int failed = json_read_text(value, pointer, &text, err);
    return failed ? failed : set(request, text, err);
}

static int set_flag(cordon_request *request, const json_t *value, const char *pointer, flag_setter *set,
                    cordon_error *err)
{
    if (!json_is_boolean(value))
        return json_wrong_type(value, pointer, "true or false", err);
    return set(request, json_is_true(value), err);
}

static int add_texts(cordon_request *request, const json_t *value, const char *pointer, text_setter *add,
                     cordon_error *err)
{
    if (!json_is_array(value))
        return json_wrong_type(value, pointer, "an array of strings", err);
    size_t index;
    json_t *item;
    json_array_foreach(value, index, item)
    {
        struct word_pointer at = word_pointer_index(pointer, index);
        int failed = set_text(request, item, at.text, add, err);
        if (failed) {
            /* A setter that keeps no list cannot know which item it was given. */
            if (err && failed == CORDON_EINVAL)
                snprintf(err->field, sizeof err->field, "%s", at.text);
            return failed;
        }
    }
    return 0;
}

/* Each field has one of: a setter for its string, one for each string of its array, one for true or false, or a reader
 * of its own. */
static const struct {
    const char *name;
    text_setter *set, *add;
    flag_setter *flag;
    json_field_reader *read;
} fields[] = {
    {"language", .set = cordon_request_set_language},
    {"code", .read = json_read_code},
    {"files", .read = json_read_files},
    {"entry", .set = cordon_request_set_entry},
    {"stdin", .read = json_read_stdin},
    {"args", .add = cordon_request_add_arg},
    {"env", .read = json_read_env},
    {"profile", .set = cordon_request_set_profile},
    {"limits", .read = json_read_limits},
    {"isolation", .set = cordon_request_set_isolation},
    {"network", .set = cordon_request_set_network},
    {"environment", .set = cordon_request_set_environment},
    {"mounts", .read = json_read_mounts},
    {"sanitize", .read = json_read_sanitize},
    {"collect", .add = cordon_request_add_collect},
    {"collect_all", .flag = cordon_request_set_collect_all},
    {"optional", .add = cordon_request_add_optional},
    {"on_output_limit", .set = cordon_request_set_on_output_limit},
    {"output_encoding", .set = cordon_request_set_output_encoding},
    {"warm", .flag = cordon_request_set_warm},
    {"pty", .flag = cordon_request_set_pty},
    {"tests", .read = json_read_tests},
};

static int read_field(cordon_request *request, size_t field, const json_t *value, cordon_error *err)
{
    struct word_pointer pointer = word_pointer("", fields[field].name);
    if (fields[field].set)
        return set_text(request, value, pointer.text, fields[field].set, err);
    if (fields[field].add)
        return add_texts(request, value, pointer.text, fields[field].add, err);
    if (fields[field].flag)
        return set_flag(request, value, pointer.text, fields[field].flag, err);
    return fields[field].read(request, value, pointer.text, err);
}

static int read_fields(cordon_request *request, const json_t *root, cordon_error *err)
{
    const char *names[ARRAY_LEN(fields)];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        names[i] = fields[i].name;
    int failed = json_check_members(root, "", names, ARRAY_LEN(names), err);
    for (size_t i = 0; i < ARRAY_LEN(fields) && !failed; i++) {
        const json_t *value = json_object_get(root, fields[i].name);
        if (value)
            failed = read_field(request, i, value, err);
    }
    return failed;
}

/* Bounds what parsing may cost, without judging whether the text is JSON. */
static int check_shape(const char *json, size_t length, cordon_error *err)
{
    if (length > JSON_BYTES_MAX)
        return error_field(err, "", "the request is %zu bytes of JSON; expected at most %zu", length, JSON_BYTES_MAX);
    size_t depth = 0, values = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = json[i];
        if (c == '"')
            quoted = !quoted;
        else if (quoted)
            i += c == '\\';
        else if (c == '[' || c == '{') {
            if (++depth > JSON_DEPTH_MAX)
                return error_field(err, "", "the JSON is nested too deep; expected at most %d levels", JSON_DEPTH_MAX);
        } else if (c == ']' || c == '}')
            depth -= depth > 0;
        else if (c == ',' && ++values >= JSON_VALUES_MAX)
            return error_field(err, "", "the JSON holds too many values; expected at most %d", JSON_VALUES_MAX);
    }
    return 0;
}

int json_parse(const char *json, size_t length, json_t **root, cordon_error *err)
{
    int failed = check_shape(json, length, err);
    if (failed)
        return failed;
    json_error_t where;
    *root = json_loadb(json, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (*root)
        return 0;
    if (json_error_code(&where) == json_error_out_of_memory)
        return error_nomem(err);
    return error_field(err, "", "invalid JSON at line %d, column %d: %s", where.line, where.column,
                       word_show(where.text).text);
}

/* An empty object, the value that costs most, takes 240 bytes in jansson. */
#define VALUE_BYTES 256

size_t json_cost(const char *json, size_t length)
{
    size_t values = 1;
    bool quoted = false;
    for (size_t i = 0; i < length; i++)
        if (json[i] == '"')
            quoted = !quoted;
        else if (quoted)
            i += json[i] == '\\';
        else
            values += json[i] == ',' || json[i] == '[' || json[i] == '{';
    return length + values * VALUE_BYTES;
}

int request_from_object(const json_t *root, cordon_request **request, cordon_error *err)
{
    if (!json_is_object(root))
        return json_wrong_type(root, "", "an object", err);
    __attribute__((cleanup(cleanup_request))) cordon_request *made = cordon_request_new();
    if (!made)
        return error_nomem(err);
    int failed = read_fields(made, root, err);
    if (!failed)
        *request = take_ptr(&made);
    return failed;
}

int cordon_request_from_json(const char *json, size_t length, cordon_request **request, cordon_error *err)
{
    REQUIRE(json, err);
    REQUIRE(request, err);
    __attribute__((cleanup(cleanup_json))) json_t *root = NULL;
    int failed = json_parse(json, length, &root, err);
    return failed ? failed : request_from_object(root, request, err);
}
