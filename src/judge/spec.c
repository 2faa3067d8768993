/* Owns the shape of `tests`: names of fields, defaults that hold for every case, and the pointer of what is wrong.
 * Values that a plain request has too (limits, args, programs) are judged where the request for a case is made. Called
 * by judge.c. */
#include "judge/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "output/utf8.h"
#include "plan/request_json.h"
#include "plan/word.h"

static const char *const match_names[MATCH_COUNT] = {"exact", "trim", "tokens", "float", "checker"};

/* What a case may take from the object around the cases. */
struct defaults {
    bool has_match;
    enum match match;
    double tolerance;
    const json_t *checker, *interactor;
};

static int read_match(const json_t *object, const char *pointer, struct defaults *into, cordon_error *err)
{
    const json_t *value = json_object_get(object, "match");
    struct word_pointer at = word_pointer(pointer, "match");
    const char *name;
    if (!value)
        return 0;
    int code = json_read_text(value, at.text, &name, err);
    if (code < 0)
        return code;
    for (int i = 0; i < MATCH_COUNT; i++)
        if (!strcmp(match_names[i], name)) {
            into->match = (enum match)i;
            into->has_match = true;
            return 0;
        }
    return word_unknown(err, at.text, "match", name, match_names, MATCH_COUNT);
}

static int read_tolerance(const json_t *object, const char *pointer, struct defaults *into, cordon_error *err)
{
    const json_t *value = json_object_get(object, "tolerance");
    struct word_pointer at = word_pointer(pointer, "tolerance");
    if (!value)
        return 0;
    if (!json_is_number(value))
        return json_wrong_type(value, at.text, "a number", err);
    into->tolerance = json_number_value(value);
    if (!isfinite(into->tolerance) || into->tolerance < 0)
        return error_field(err, at.text, "tolerance is %g; expected a number from 0 on", into->tolerance);
    return 0;
}

static int read_program(const json_t *object, const char *pointer, const char *name, const json_t **program,
                        cordon_error *err)
{
    static const char *const members[] = {"language", "code", "files", "entry", "limits"};
    const json_t *value = json_object_get(object, name);
    struct word_pointer at = word_pointer(pointer, name);
    if (!value)
        return 0;
    if (!json_is_object(value))
        return json_wrong_type(value, at.text, "an object with language and code", err);
    int code = json_check_members(value, at.text, members, ARRAY_LEN(members), err);
    if (code < 0)
        return code;
    if (!json_object_get(value, "language"))
        return error_field(err, at.text, "%s has no language; expected {\"language\": ..., \"code\": ...}", name);
    *program = value;
    return 0;
}

/* A program given here says how to compare, unless `match` says otherwise beside it. */
static int read_defaults(const json_t *object, const char *pointer, struct defaults *into, cordon_error *err)
{
    const json_t *checker = NULL, *interactor = NULL;
    bool had_match = into->has_match;
    into->has_match = false;
    int code = read_match(object, pointer, into, err);
    if (code == 0)
        code = read_tolerance(object, pointer, into, err);
    if (code == 0)
        code = read_program(object, pointer, "checker", &checker, err);
    if (code == 0)
        code = read_program(object, pointer, "interactor", &interactor, err);
    if (code < 0)
        return code;
    if (checker && interactor)
        return error_field(err, word_pointer(pointer, "interactor").text,
                           "both checker and interactor are given; expected one of them");
    if ((checker && into->has_match && into->match != MATCH_CHECKER) || (interactor && into->has_match))
        return error_field(err, word_pointer(pointer, "match").text, "match is '%s' beside %s; expected %s",
                           match_names[into->match], checker ? "a checker" : "an interactor",
                           checker ? "'checker' or nothing" : "nothing");
    if (checker || interactor) {
        into->checker = checker;
        into->interactor = interactor;
        into->match = MATCH_CHECKER;
    } else if (into->has_match)
        into->interactor = NULL;
    into->has_match |= had_match || checker || interactor;
    return 0;
}

static int read_base64(const json_t *value, const char *pointer, struct slice *bytes, void **decoded, cordon_error *err)
{
    static const char *const members[] = {"base64"};
    const json_t *text = json_object_get(value, "base64");
    struct word_pointer at = word_pointer(pointer, "base64");
    bool bad = false;
    int code = json_check_members(value, pointer, members, ARRAY_LEN(members), err);
    if (code < 0)
        return code;
    if (!json_is_string(text))
        return error_field(err, at.text, "base64 is missing or no string; expected text in base64");
    *decoded = base64_decode(json_string_value(text), json_string_length(text), &bytes->length, &bad);
    if (!*decoded)
        return bad ? error_field(err, at.text, "the text is not base64 (RFC 4648, padded, no line breaks)")
                   : error_nomem(err);
    bytes->data = *decoded;
    return 0;
}

static int read_bytes(const json_t *object, const char *pointer, const char *name, struct slice *bytes, void **decoded,
                      cordon_error *err)
{
    const json_t *value = json_object_get(object, name);
    struct word_pointer at = word_pointer(pointer, name);
    *bytes = (struct slice){"", 0};
    if (!value)
        return 0;
    if (json_is_object(value))
        return read_base64(value, at.text, bytes, decoded, err);
    if (!json_is_string(value))
        return json_wrong_type(value, at.text, "a string or {\"base64\": \"...\"}", err);
    *bytes = (struct slice){json_string_value(value), json_string_length(value)};
    return 0;
}

static int read_name(const json_t *object, const char *pointer, size_t index, char **name, cordon_error *err)
{
    const json_t *value = json_object_get(object, "name");
    const char *text;
    if (!value)
        return asprintf(name, "case %zu", index + 1) < 0 ? error_nomem(err) : 0;
    struct word_pointer at = word_pointer(pointer, "name");
    int code = json_read_text(value, at.text, &text, err);
    if (code < 0)
        return code;
    if (strlen(text) > SPEC_NAME_MAX)
        return error_field(err, at.text, "the name has %zu bytes; expected at most %d", strlen(text), SPEC_NAME_MAX);
    *name = strdup(text);
    return *name ? 0 : error_nomem(err);
}

static int read_case_fields(const json_t *object, const char *pointer, struct defaults from, struct spec_case *one,
                            cordon_error *err)
{
    int code = read_defaults(object, pointer, &from, err);
    if (code == 0)
        code = read_bytes(object, pointer, "stdin", &one->input, &one->decoded[0], err);
    if (code == 0)
        code = read_bytes(object, pointer, "expected", &one->expected, &one->decoded[1], err);
    if (code < 0)
        return code;
    one->has_input = json_object_get(object, "stdin");
    one->has_expected = json_object_get(object, "expected");
    one->args = json_object_get(object, "args");
    one->limits = json_object_get(object, "limits");
    one->match = from.match;
    one->tolerance = from.tolerance;
    one->interactor = from.interactor;
    one->checker = from.match == MATCH_CHECKER && !from.interactor ? from.checker : NULL;
    if (from.match == MATCH_CHECKER && !one->checker && !one->interactor)
        return error_field(err, word_pointer(pointer, "checker").text,
                           "match is 'checker' and there is none; expected {\"language\": ..., \"code\": ...}");
    if (json_object_get(object, "match") && from.match != MATCH_CHECKER && !one->has_expected)
        return error_field(err, word_pointer(pointer, "expected").text, "expected is missing; expected a string");
    if (one->interactor && one->has_input)
        return error_field(err, word_pointer(pointer, "stdin").text,
                           "an interactor gives the program its input; expected no stdin");
    return 0;
}

static int read_case(const json_t *object, size_t index, const struct defaults *from, struct spec_case *one,
                     cordon_error *err)
{
    static const char *const members[] = {"name",      "stdin",   "args",       "expected", "match",
                                          "tolerance", "checker", "interactor", "limits"};
    struct word_pointer at = word_pointer_index("/tests/cases", index);
    if (!json_is_object(object))
        return json_wrong_type(object, at.text, "an object", err);
    int code = json_check_members(object, at.text, members, ARRAY_LEN(members), err);
    if (code == 0)
        code = read_name(object, at.text, index, &one->name, err);
    return code < 0 ? code : read_case_fields(object, at.text, *from, one, err);
}

static int read_stop(const json_t *tests, bool *stop, cordon_error *err)
{
    static const char *const names[] = {"never", "first_failure"};
    const json_t *value = json_object_get(tests, "stop");
    const char *name;
    if (!value)
        return 0;
    int code = json_read_text(value, "/tests/stop", &name, err);
    if (code < 0)
        return code;
    *stop = !strcmp(name, names[1]);
    return *stop || !strcmp(name, names[0]) ? 0
                                            : word_unknown(err, "/tests/stop", "stop", name, names, ARRAY_LEN(names));
}

static int read_cases(const json_t *tests, struct spec *spec, cordon_error *err)
{
    static const char *const members[] = {"cases", "stop", "match", "tolerance", "checker", "interactor", "limits"};
    const json_t *list = json_object_get(tests, "cases"), *one;
    struct defaults defaults = {.match = MATCH_TRIM, .tolerance = COMPARE_TOLERANCE};
    int code = json_check_members(tests, "/tests", members, ARRAY_LEN(members), err);
    if (code == 0)
        code = read_stop(tests, &spec->stop_at_failure, err);
    if (code == 0)
        code = read_defaults(tests, "/tests", &defaults, err);
    if (code < 0)
        return code;
    if (!json_is_array(list))
        return json_wrong_type(list, "/tests/cases", "an array of cases", err);
    size_t count = json_array_size(list), i;
    if (!count || count > SPEC_CASES_MAX)
        return error_field(err, "/tests/cases", "there are %zu cases; expected 1 to %d", count, SPEC_CASES_MAX);
    spec->limits = json_object_get(tests, "limits");
    spec->cases = calloc(count, sizeof *spec->cases);
    if (!spec->cases)
        return error_nomem(err);
    spec->count = count;
    json_array_foreach(list, i, one)
    {
        code = read_case(one, i, &defaults, &spec->cases[i], err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int read_framework(const json_t *tests, struct spec *spec, cordon_error *err)
{
    static const char *const members[] = {"files", "framework"};
    int code = json_check_members(tests, "/tests", members, ARRAY_LEN(members), err);
    spec->files = json_object_get(tests, "files");
    if (code < 0)
        return code;
    if (!spec->files || !json_is_object(spec->files) || !json_object_size(spec->files))
        return error_field(err, "/tests/files", "there are no test files; expected an object of path and content");
    return json_read_text(json_object_get(tests, "framework"), "/tests/framework", &spec->framework, err);
}

int spec_read(const json_t *tests, struct spec *spec, cordon_error *err)
{
    *spec = (struct spec){0};
    if (!tests)
        return error_field(err, "/tests", "there are no tests; expected an object with cases, or framework and files");
    if (!json_is_object(tests))
        return json_wrong_type(tests, "/tests", "an object", err);
    bool has_cases = json_object_get(tests, "cases"), has_framework = json_object_get(tests, "framework");
    if (has_cases == has_framework)
        return error_field(err, "/tests", "%s are given; expected one of them",
                           has_cases ? "both cases and a framework" : "neither cases nor a framework");
    int code = has_cases ? read_cases(tests, spec, err) : read_framework(tests, spec, err);
    if (code < 0)
        spec_free(spec);
    return code;
}

void spec_free(struct spec *spec)
{
    for (size_t i = 0; i < spec->count; i++) {
        free(spec->cases[i].name);
        free(spec->cases[i].decoded[0]);
        free(spec->cases[i].decoded[1]);
    }
    free(spec->cases);
    *spec = (struct spec){0};
}
