/* Tests through the library: a request with `tests`, from JSON and from setters, read by getters. */
#include <stdlib.h>
#include <string.h>

#include "api.h"

static const char doubling[] = "print(int(input()) * 2)";

static cordon_result *judge(cordon_engine *engine, const cordon_request *request, const cordon_judge_options *options)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    int code = cordon_judge(engine, request, options, &result, &err);
    CHECK(code == 0, "%d %s %s: %s (%s)", code, err.step, err.field, err.text, err.hint);
    return result;
}

/* Three cases, of which the second fails. */
static void check_cases(const cordon_result *result)
{
    cordon_test_counts counts = CORDON_TEST_COUNTS_INIT;
    cordon_test test = CORDON_TEST_INIT;
    CHECK(cordon_result_tests(result, &counts), "no tests");
    CHECK(counts.passed == 2 && counts.failed == 1 && counts.skipped == 0 && counts.total == 3,
          "%zu passed, %zu failed, %zu skipped of %zu", counts.passed, counts.failed, counts.skipped, counts.total);
    CHECK(!cordon_result_success(result), "not all have passed");
    CHECK(cordon_result_status(result) == CORDON_STATUS_OK, "%d", cordon_result_status(result));
    CHECK(strstr(cordon_result_reason(result), "second: failed"), "%s", cordon_result_reason(result));
    CHECK(!strcmp(cordon_result_stdout(result, NULL), "4\n"), "%s", cordon_result_stdout(result, NULL));

    CHECK(cordon_result_test(result, 0, &test), "no first case");
    CHECK(!strcmp(test.name, "case 1") && !strcmp(test.status, "passed") && test.passed, "%s %s", test.name,
          test.status);
    CHECK(!test.reason && test.got_length == 2 && !memcmp(test.got, "2\n", 2), "%s", test.got);
    CHECK(test.memory_program_peak_bytes > 0 && test.memory_program_peak_bytes <= test.memory_peak_bytes, "%llu bytes",
          (unsigned long long)test.memory_program_peak_bytes);
    CHECK(test.wall_us > 0 && test.memory_peak_bytes > 0, "%llu us, %llu bytes", (unsigned long long)test.wall_us,
          (unsigned long long)test.memory_peak_bytes);
    CHECK(cordon_result_test(result, 1, &test), "no second case");
    CHECK(!strcmp(test.name, "second") && !strcmp(test.status, "failed") && !test.passed, "%s %s", test.name,
          test.status);
    CHECK(!strcmp(test.expected, "5") && test.reason, "%s", test.expected);
    CHECK(cordon_result_test(result, 2, &test) && test.passed, "no third case");
    CHECK(!cordon_result_test(result, 3, &test), "a fourth case");
}

void test_tests_json(void)
{
    static const char json[] =
        "{\"language\": \"python\", \"code\": \"print(int(input()) * 2)\", \"tests\": {\"cases\": ["
        "{\"stdin\": \"1\", \"expected\": \"2\"}, {\"name\": \"second\", \"stdin\": \"2\", \"expected\": \"5\"},"
        "{\"stdin\": \"3\", \"expected\": \"6\"}]}}";
    cordon_engine *engine = open_engine();
    cordon_request *request = NULL;
    cordon_error err = {0};
    CHECK(!cordon_request_from_json(json, strlen(json), &request, &err), "%s", err.text);
    if (optional_control)
        CHECK(!cordon_request_add_optional(request, optional_control, &err), "%s", err.text);
    cordon_result *result = judge(engine, request, NULL), *plain = NULL;
    check_cases(result);
    CHECK(strstr(cordon_result_json(result), "\"passed\":2"), "%s", cordon_result_json(result));
    cordon_result_free(result);
    /* A plain run has no place for tests, and names what has. */
    CHECK(cordon_execute(engine, request, NULL, &plain, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(!strcmp(err.field, "/tests") && strstr(err.hint, "cordon_judge()"), "%s %s", err.field, err.hint);
    cordon_request_free(request);
    cordon_engine_close(engine);
}

struct heard {
    size_t tests, passed, total;
};

static void hear(void *context, size_t index, size_t total, const cordon_test *test)
{
    struct heard *heard = context;
    CHECK(index < total && test->name, "case %zu of %zu", index, total);
    heard->tests++;
    heard->passed += test->passed;
    heard->total = total;
}

static cordon_request *doubling_request(const char *match)
{
    cordon_request *request = new_request("python", doubling);
    cordon_error err = {0};
    CHECK(!cordon_request_add_test_case(request, NULL, "1", 1, "2", 1, &err), "%s", err.text);
    CHECK(!cordon_request_add_test_case(request, "second", "2", 1, "5", 1, &err), "%s", err.text);
    CHECK(!cordon_request_add_test_case(request, NULL, "3", 1, "  6", 3, &err), "%s", err.text);
    CHECK(!cordon_request_set_test_match(request, match, &err), "%s", err.text);
    return request;
}

void test_tests_setters(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = doubling_request("tokens");
    cordon_judge_options options = CORDON_JUDGE_OPTIONS_INIT;
    struct heard heard = {0};
    cordon_error err = {0};
    options.parallel = 2;
    options.on_test = hear;
    options.context = &heard;
    cordon_result *result = judge(engine, request, &options);
    check_cases(result);
    CHECK(heard.tests == 3 && heard.passed == 2 && heard.total == 3, "%zu, %zu of %zu", heard.tests, heard.passed,
          heard.total);
    cordon_result_free(result);

    /* The same request with a checker, which is content with everything. */
    static const char checker[] = "import sys; assert len(sys.argv) == 4";
    CHECK(!cordon_request_set_test_match(request, "checker", &err), "%s", err.text);
    CHECK(!cordon_request_set_test_checker(request, "python", checker, strlen(checker), &err), "%s", err.text);
    result = judge(engine, request, NULL);
    CHECK(cordon_result_success(result) && !cordon_result_reason(result), "%s", cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(request);

    /* The first failure is the end. */
    cordon_test_counts counts = CORDON_TEST_COUNTS_INIT;
    request = doubling_request("exact");
    CHECK(!cordon_request_set_test_stop(request, "first_failure", &err), "%s", err.text);
    result = judge(engine, request, NULL);
    CHECK(cordon_result_tests(result, &counts) && counts.failed == 1 && counts.skipped == 2, "%s",
          cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
}

static int stop_at_once(void *context)
{
    ++*(int *)context;
    return 0;
}

void test_tests_errors(void)
{
    static const char framework[] = "{\"framework\": \"unittest\", \"files\": {\"test_a.py\": "
                                    "\"import unittest\\nclass T(unittest.TestCase):\\n def test_a(self): pass\\n\"}}";
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("python", doubling);
    cordon_judge_options options = CORDON_JUDGE_OPTIONS_INIT;
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(cordon_judge(engine, request, NULL, &result, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(!strcmp(err.field, "/tests"), "%s", err.field);
    CHECK(cordon_judge(engine, NULL, NULL, &result, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(cordon_request_set_tests(request, "[]", 2, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(cordon_request_set_tests(request, "{", 1, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(!cordon_request_set_tests(request, framework, strlen(framework), &err), "%s", err.text);
    result = judge(engine, request, NULL);
    cordon_test test = CORDON_TEST_INIT;
    CHECK(cordon_result_success(result) && cordon_result_test(result, 0, &test) && strstr(test.name, "test_a"), "%s",
          cordon_result_json(result));
    cordon_result_free(result);

    /* Words that do not exist are told by their place; a name that JSON cannot carry is refused. */
    CHECK(!cordon_request_set_tests(request, "{}", 2, &err), "%s", err.text);
    CHECK(cordon_request_add_test_case(request, "\xff", NULL, 0, NULL, 0, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(!strcmp(err.field, "/tests/cases/0/name"), "%s", err.field);
    CHECK(!cordon_request_add_test_case(request, "long", NULL, 0, "\xff", 1, &err), "%s", err.text);
    CHECK(!cordon_request_set_test_match(request, "tokns", &err), "%s", err.text);
    CHECK(cordon_judge(engine, request, NULL, &result, &err) == CORDON_EINVAL, "%s", err.text);
    CHECK(!strcmp(err.field, "/tests/match") && strstr(err.text, "tokens"), "%s %s", err.field, err.text);
    cordon_request_free(request);

    /* Cancelled while its only case runs. */
    int asked = 0;
    request = new_request("bash", "sleep 30");
    CHECK(!cordon_request_add_test_case(request, NULL, NULL, 0, NULL, 0, &err), "%s", err.text);
    options.go_on = stop_at_once;
    options.context = &asked;
    result = judge(engine, request, &options);
    CHECK(asked > 0 && cordon_result_status(result) == CORDON_STATUS_CANCELLED && !cordon_result_success(result), "%s",
          cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
}
