/* The debug report over results of every status. results/NAME.json is what `cordon run --json` gave. */
#include "explain/debug.h"

#include "unit.h"

#define RESULTS SOURCE_ROOT "/tests/unit/explain/results/"

static json_t *load(const char *name)
{
    auto_free char *path = NULL;
    json_error_t where;
    assert_true(asprintf(&path, RESULTS "%s.json", name) > 0);
    json_t *result = json_load_file(path, JSON_ALLOW_NUL, &where);
    if (!result)
        fail_msg("%s: %s", path, where.text);
    return result;
}

static json_t *parse(const char *text)
{
    json_error_t where;
    json_t *value = json_loads(text, 0, &where);
    if (!value)
        fail_msg("%s: %s", where.text, text);
    return value;
}

static const struct expectation {
    const char *name;
    const char *severity;
    const char *summary;    /* a part of it */
    const char *changes[3]; /* a part of each, in order; NULL: no such entry */
} expectations[] = {
    {"ok", "none", "python: ok in 0.", {NULL}},
    {"near_memory", "warning", "python: ok", {"set limits.memory_bytes to 134217728 (128 MiB)"}},
    {"zero",
     "error",
     "ZeroDivisionError: division by zero (main.py:2)",
     {"main.py:2: ZeroDivisionError: division by zero: the divisor is zero; test it first"}},
    {"import", "error", "No module named 'pandsa_missing'", {"python3-pandsa_missing"}},
    {"syntax", "error", "SyntaxError", {"main.py:1: SyntaxError"}},
    {"wall", "error", "stopped at the 500 ms wall limit", {"endless loop", "set limits.wall_ms to 1000 (1 s)"}},
    {"cpu", "error", "stopped at the 300 ms CPU limit", {"slow algorithm", "set limits.cpu_ms to 600 (600 ms)"}},
    {"memory", "error", "out of memory at the 64 MiB", {"keep less in memory", "limits.memory_bytes to 134217728"}},
    {"processes", "error", "10 process limit", {"start fewer", "set limits.processes to 20 (20)"}},
    {"disk", "error", "1 MiB disk limit", {"write less", "set limits.disk_bytes to 2097152 (2 MiB)"}},
    {"truncated",
     "warning",
     "python: ok",
     {"stdout was cut: 1001 bytes were printed; print less, or set limits.output_bytes to 1600"}},
    {"output_limit", "error", "200 bytes output limit", {"print less", "set limits.output_bytes to 400"}},
    {"refused", "error", "unshare", {"unshare was refused"}},
    {"network", "error", "Network is unreachable", {"network: none", "do without connect(93.184.216.34:80)"}},
    {"compile", "error", "the compile step exited with 1", {"main.c:1: "}},
    {"signaled", "error", "SIGSEGV", {"null or dangling pointer"}},
    {"denied", "error", "foreign system call ABI", {"64-bit ABI"}},
    {"rejected",
     "error",
     "rejected: unknown language 'pythn'",
     {"/language: unknown language 'pythn': did you mean 'python'?"}},
    {"unenforceable", "failure", "isolation 'vm' is not available", {"isolation 'vm' is not available"}},
    {"exit3", "error", "bash: nonzero_exit: exited with 3", {"the last thing it said: no"}},
};

static void check_changes(const struct expectation *expected, const json_t *list)
{
    for (size_t i = 0; i < ARRAY_LEN(expected->changes) && expected->changes[i]; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || !strstr(text, expected->changes[i]))
            fail_msg("%s: change %zu is \"%s\"; expected \"%s\"", expected->name, i, text ? text : "",
                     expected->changes[i]);
    }
    if (!expected->changes[0])
        assert_int_equal(json_array_size(list), 0);
}

static void check_text(const struct expectation *expected, const json_t *report)
{
    auto_free char *text = debug_text(report);
    assert_non_null(text);
    unsigned lines = 0;
    for (const char *c = text; *c; c++) {
        lines += *c == '\n';
        if ((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t')
            fail_msg("%s: a control character in the text", expected->name);
    }
    assert_in_range(lines, 1, 16);
    if (!strstr(text, expected->summary) || (expected->changes[0] && !strstr(text, expected->changes[0])))
        fail_msg("%s: the text lacks the summary or the first change:\n%s", expected->name, text);
}

static void test_debug__every_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(expectations); i++) {
        const struct expectation *expected = &expectations[i];
        json_t *result = load(expected->name), *report = debug_report(result, NULL);
        assert_non_null(report);
        const char *summary = json_string_value(json_object_get(report, "summary"));
        if (!summary || !strstr(summary, expected->summary) || strchr(summary, '\n'))
            fail_msg("%s: summary \"%s\"; expected \"%s\"", expected->name, summary ? summary : "", expected->summary);
        assert_string_equal(json_string_value(json_object_get(report, "severity")), expected->severity);
        assert_true(json_equal(json_object_get(report, "status"), json_object_get(result, "status")));
        check_changes(expected, json_object_get(report, "what_to_change"));
        check_text(expected, report);
        json_decref(report);
        json_decref(result);
    }
}

static const json_t *usage_row(const json_t *report, const char *limit)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(report, "usage"), i,
                       row) if (!strcmp(json_string_value(json_object_get(row, "limit")), limit)) return row;
    return NULL;
}

static void test_debug__usage_against_limits(void **state)
{
    (void)state;
    json_t *result = load("memory"), *report = debug_report(result, NULL);
    static const char *const limits[] = {"wall_ms",    "cpu_ms", "memory_bytes", "processes",
                                         "disk_bytes", "inodes", "output_bytes"};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        assert_non_null(usage_row(report, limits[i]));
    const json_t *row = usage_row(report, "wall_ms");
    assert_false(json_is_true(json_object_get(row, "near")));
    assert_int_equal(json_integer_value(json_object_get(row, "limit_value")), 15000);
    json_decref(report);

    json_object_set_new(json_object_get(result, "limits"), "wall_ms", json_string("unlimited"));
    json_object_set_new(json_object_get(result, "usage"), "memory_peak_bytes", json_integer(64 << 20));
    report = debug_report(result, NULL);
    assert_true(json_is_null(json_object_get(usage_row(report, "wall_ms"), "percent")));
    row = usage_row(report, "memory_bytes");
    assert_true(json_is_true(json_object_get(row, "near")));
    assert_int_equal(json_integer_value(json_object_get(row, "percent")), 100);
    json_decref(report);
    json_decref(result);
}

static void test_debug__denials_have_hints_once(void **state)
{
    (void)state;
    json_t *result = load("network"), *report = debug_report(result, NULL);
    const json_t *row = json_array_get(json_object_get(report, "denied"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "kind")), "network");
    assert_true(json_string_length(json_object_get(row, "hint")) > 10);
    json_decref(report);
    json_decref(result);
}

static void test_debug__tests_show_expected_and_got(void **state)
{
    (void)state;
    json_t *result = load("ok");
    json_object_set_new(result, "tests",
                        parse("{\"passed\": 1, \"failed\": 1, \"total\": 2, \"cases\": ["
                              "{\"name\": \"one\", \"status\": \"passed\"},"
                              "{\"name\": \"two\", \"status\": \"failed\", \"expected\": \"4\", \"got\": \"5\\n\"}]}"));
    json_t *report = debug_report(result, NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "what_to_change"), 0)),
                        "test two: failed: expected '4', got '5 '");
    json_decref(report);
    json_decref(result);
}

static void test_debug__compile_limits_are_not_to_be_raised(void **state)
{
    (void)state;
    json_t *result = load("compile");
    json_object_set_new(result, "reason",
                        json_string("the compile step stopped at the 60 s wall limit; raise limits.wall_ms"));
    json_t *report = debug_report(result, NULL);
    auto_free char *list = json_dumps(json_object_get(report, "what_to_change"), 0);
    assert_non_null(strstr(list, "limits of the compile step are fixed"));
    assert_null(strstr(list, "set limits."));
    json_decref(report);
    json_decref(result);
}

/* A program chooses its output: nothing of it may move a cursor, grow the report or break its JSON. */
static void test_debug__hostile_output_is_bounded(void **state)
{
    (void)state;
    json_t *result = load("exit3");
    auto_free char *flood = malloc(1 << 20);
    memset(flood, 0x1b, 1 << 20);
    memcpy(flood + (1 << 20) - 6, "\xc3\xa4\xc3\xa4\xc3\xa4", 6);
    json_object_set_new(result, "stderr", json_stringn(flood, 1 << 20));
    json_object_set_new(json_object_get(result, "error"), "message", json_stringn(flood, 1 << 20));
    json_object_set_new(json_object_get(result, "error"), "file", json_string("a\nb\x1b[2J"));
    json_t *report = debug_report(result, NULL);
    assert_non_null(report);
    auto_free char *dumped = json_dumps(json_object_get(report, "output"), 0);
    assert_true(strlen(dumped) < 6 * 2100);
    auto_free char *text = debug_text(report);
    assert_non_null(text);
    assert_null(strchr(text, 0x1b));
    assert_true(strlen(text) < 16 * 300);
    json_decref(report);
    json_decref(result);
}

static void test_debug__partial_results_do_not_fail(void **state)
{
    (void)state;
    static const char *const results[] = {"{}",
                                          "{\"id\": \"x\", \"state\": \"running\", \"status\": null}",
                                          "{\"status\": 3, \"error\": [], \"denials\": {}}",
                                          "{\"status\": \"wall_limit\", \"reason\": \"limits.\"}",
                                          "{\"status\": \"cancelled\", \"reason\": \"cancelled by the caller\"}",
                                          "{\"status\": \"internal_error\", \"reason\": null, \"usage\": {\"wall_ms\": "
                                          "1}, \"limits\": {\"wall_ms\": 0}}"};
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        json_t *result = parse(results[i]), *report = debug_report(result, NULL);
        assert_non_null(report);
        auto_free char *text = debug_text(report);
        assert_true(text && *text);
        json_decref(report);
        json_decref(result);
    }
}

static void test_debug__base64_output_is_not_shown_as_text(void **state)
{
    (void)state;
    json_t *result = load("zero"), *request = parse("{\"output_encoding\": \"base64\"}");
    json_t *report = debug_report(result, request), *output = json_object_get(report, "output");
    assert_string_equal(json_string_value(json_object_get(output, "encoding")), "base64");
    assert_string_equal(json_string_value(json_object_get(output, "stderr")), "");
    json_decref(report);
    json_decref(request);
    json_decref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_debug__every_status),
        cmocka_unit_test(test_debug__usage_against_limits),
        cmocka_unit_test(test_debug__denials_have_hints_once),
        cmocka_unit_test(test_debug__tests_show_expected_and_got),
        cmocka_unit_test(test_debug__compile_limits_are_not_to_be_raised),
        cmocka_unit_test(test_debug__hostile_output_is_bounded),
        cmocka_unit_test(test_debug__partial_results_do_not_fail),
        cmocka_unit_test(test_debug__base64_output_is_not_shown_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
