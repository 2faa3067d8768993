/* Owns the forms in which people keep tests on disk. Judges nothing about single cases: that is the judge's. Called by
 * test_flags.c. */
#include "service/test_cases.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/input.h"
#include "output/utf8.h"

static int read_json(const char *path, json_t **tests, cordon_error *err)
{
    auto_buf struct buf text = {0};
    json_error_t where;
    int code = input_read_file(path, &text, NULL, err);
    if (code < 0)
        return code;
    json_t *found = json_loadb(buf_text(&text), text.length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!found)
        return error_set(err, CORDON_EINVAL, "tests", "%s, line %d, column %d: %s", path, where.line, where.column,
                         where.text);
    /* A whole Request is at hand more often than its tests alone. */
    if (json_is_object(found) && json_object_get(found, "tests")) {
        json_t *inner = json_incref(json_object_get(found, "tests"));
        json_decref(found);
        found = inner;
    }
    *tests = json_is_array(found) ? json_pack("{s:o}", "cases", found) : found;
    return *tests ? 0 : error_nomem(err);
}

static bool has_end(const char *name, const char *end)
{
    size_t length = strlen(name), cut = strlen(end);
    return length > cut && !strcmp(name + length - cut, end);
}

static int is_input(const struct dirent *entry)
{
    return has_end(entry->d_name, ".in");
}

/* The bytes of a file as a string, or as base64 where they are no UTF-8. */
static int read_bytes(const char *directory, const char *name, const char *end, json_t **value, cordon_error *err)
{
    auto_buf struct buf path = {0}, content = {0};
    buf_printf(&path, "%s/%.*s%s", directory, (int)(strlen(name) - strlen(".in")), name, end);
    int code = input_read_file(buf_text(&path), &content, NULL, err);
    if (code < 0)
        return code;
    if (utf8_valid(buf_text(&content), content.length))
        *value = json_stringn(buf_text(&content), content.length);
    else {
        size_t length;
        auto_free char *encoded = base64_encode(buf_text(&content), content.length, &length);
        *value = encoded ? json_pack("{s:s}", "base64", encoded) : NULL;
    }
    return *value ? 0 : error_nomem(err);
}

static int add_pair(const char *directory, const char *name, json_t *cases, cordon_error *err)
{
    json_t *input = NULL, *expected = NULL;
    int code = read_bytes(directory, name, ".in", &input, err);
    if (code == 0)
        code = read_bytes(directory, name, ".out", &expected, err);
    if (code < 0 && input && err && err->sys_errno == ENOENT)
        code = read_bytes(directory, name, ".ans", &expected, err);
    if (code < 0) {
        json_decref(input);
        return code;
    }
    json_t *one =
        json_pack("{s:s%, s:o, s:o}", "name", name, strlen(name) - strlen(".in"), "stdin", input, "expected", expected);
    return one && json_array_append_new(cases, one) == 0 ? 0 : error_nomem(err);
}

static int read_directory(const char *path, json_t **tests, cordon_error *err)
{
    struct dirent **names;
    int count = scandir(path, &names, is_input, versionsort), code = 0;
    json_t *cases = json_array();
    if (count < 0)
        return error_set(err, CORDON_EINVAL, "tests", "cannot read %s: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (code == 0)
            code = add_pair(path, names[i]->d_name, cases, err);
        free(names[i]);
    }
    free(names);
    if (code == 0 && !count) {
        error_set(err, CORDON_EINVAL, "tests", "there is no test in %s", path);
        code = error_hint(err, "expected files NAME.in with NAME.out or NAME.ans");
    }
    if (code < 0) {
        json_decref(cases);
        return code;
    }
    *tests = json_pack("{s:o}", "cases", cases);
    return *tests ? 0 : error_nomem(err);
}

int test_cases_read(const char *path, json_t **tests, cordon_error *err)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return read_directory(path, tests, err);
    return read_json(path, tests, err);
}
