/* Owns the `tests` of a request that is built with setters: the same JSON that a request as a document carries, made a
 * member at a time. What the members mean, and whether they fit together, is judged in src/judge/spec.c when the
 * request is run. */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "output/utf8.h"
#include "plan/request_json.h"
#include "plan/request_write.h"
#include "plan/word.h"

/* The tests of the request, to be changed: never those of the document that the request was read from. */
static json_t *own_tests(cordon_request *request)
{
    if (request->tests && request->owns_tests)
        return request->tests;
    json_t *own = request->tests ? json_deep_copy(request->tests) : json_object();
    if (!own)
        return NULL;
    json_decref(request->tests);
    request->tests = own;
    request->owns_tests = true;
    return own;
}

static int set_member(cordon_request *request, const char *name, json_t *value, cordon_error *err)
{
    json_t *tests = own_tests(request);
    if (!tests || !value) {
        json_decref(value);
        return error_nomem(err);
    }
    return json_object_set_new(tests, name, value) < 0 ? error_nomem(err) : 0;
}

int cordon_request_set_tests(cordon_request *request, const char *json, size_t length, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(json, err);
    json_t *tests = NULL;
    int code = json_parse(json, length, &tests, err);
    if (code < 0)
        return code;
    code = json_read_tests(request, tests, "/tests", err);
    json_decref(tests);
    if (code == 0)
        request->owns_tests = true;
    return code;
}

/* The list of cases, made when there is none; NULL without memory, or when `cases` is no list. */
static json_t *own_cases(cordon_request *request)
{
    json_t *tests = own_tests(request);
    json_t *cases = json_object_get(tests, "cases");
    if (tests && !cases) {
        cases = json_array();
        if (json_object_set_new(tests, "cases", cases) < 0)
            return NULL;
    }
    return cases;
}

static int check_name(const char *name, const char *field, cordon_error *err)
{
    if (!name || utf8_valid(name, strlen(name)))
        return 0;
    return error_field(err, word_pointer(field, "name").text, "the name of the case is not UTF-8");
}

int cordon_request_add_test_case(cordon_request *request, const char *name, const void *input, size_t input_length,
                                 const void *expected, size_t expected_length, cordon_error *err)
{
    REQUIRE(request, err);
    json_t *cases = own_cases(request);
    if (!cases)
        return error_nomem(err);
    if (!json_is_array(cases))
        return json_wrong_type(cases, "/tests/cases", "an array of cases", err);
    struct word_pointer field = word_pointer_index("/tests/cases", json_array_size(cases));
    size_t length = (input ? input_length : 0) + (expected ? expected_length : 0);
    int code = check_name(name, field.text, err);
    if (code == 0)
        code = request_has_room(request, field.text, length, 0, err);
    if (code < 0)
        return code;
    json_t *one = json_object();
    bool failed = !one || (name && json_object_set_new(one, "name", json_string(name)) < 0) ||
                  (input && json_object_set_new(one, "stdin", request_content(input, input_length)) < 0) ||
                  (expected && json_object_set_new(one, "expected", request_content(expected, expected_length)) < 0);
    if (failed || json_array_append(cases, one) < 0) {
        json_decref(one);
        return error_nomem(err);
    }
    json_decref(one);
    request->content_bytes += length;
    return 0;
}

static int set_text_member(cordon_request *request, const char *name, const char *text, cordon_error *err)
{
    struct word_pointer field = word_pointer("/tests", name);
    if (!utf8_valid(text, strlen(text)))
        return error_field(err, field.text, "%s is not UTF-8", name);
    return set_member(request, name, json_string(text), err);
}

int cordon_request_set_test_match(cordon_request *request, const char *match, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(match, err);
    return set_text_member(request, "match", match, err);
}

int cordon_request_set_test_stop(cordon_request *request, const char *never_or_first_failure, cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(never_or_first_failure, err);
    return set_text_member(request, "stop", never_or_first_failure, err);
}

int cordon_request_set_test_checker(cordon_request *request, const char *language, const void *code, size_t length,
                                    cordon_error *err)
{
    REQUIRE(request, err);
    REQUIRE(language, err);
    if (length)
        REQUIRE(code, err);
    if (!utf8_valid(language, strlen(language)))
        return error_field(err, "/tests/checker/language", "the language is not UTF-8");
    int failed = request_has_room(request, "/tests/checker/code", length, 0, err);
    if (failed)
        return failed;
    json_t *program = json_object();
    if (!program || json_object_set_new(program, "language", json_string(language)) < 0 ||
        json_object_set_new(program, "code", request_content(code, length)) < 0) {
        json_decref(program);
        return error_nomem(err);
    }
    failed = set_member(request, "checker", program, err);
    if (!failed)
        request->content_bytes += length;
    return failed;
}
