/* What the check of a request for tests costs: a program is read once, however many cases there are. */
#include "judge/case.h"

#include <dlfcn.h>

#include "unit.h"

#define CODE_BYTES 10000
#define CASES      200

static size_t parsed;

/* In the place of jansson's, which it calls: it counts what is parsed. */
json_t *json_loadb(const char *text, size_t length, size_t flags, json_error_t *err)
{
    json_t *(*real)(const char *, size_t, size_t, json_error_t *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "json_loadb");
    parsed += length;
    return real(text, length, flags, err);
}

static char *large_code(void)
{
    char *code = malloc(CODE_BYTES + 1);
    assert_non_null(code);
    memset(code, '#', CODE_BYTES);
    code[CODE_BYTES] = '\0';
    return code;
}

/* Takes `tests`. What is parsed to check them, in multiples of the code. */
static size_t check(json_t *tests, size_t *helpers)
{
    auto_free char *code = large_code();
    json_t *request = json_pack("{s:s, s:s, s:o}", "language", "bash", "code", code, "tests", tests);
    struct spec spec;
    struct bench bench;
    cordon_error err;
    assert_non_null(request);
    assert_ok(spec_read(tests, &spec, &err), &err);
    parsed = 0;
    assert_ok(bench_open(&bench, NULL, request, &spec, NULL, &err), &err);
    *helpers = bench.helper_count;
    for (size_t i = 0; i < spec.count; i++)
        assert_true(!spec.cases[i].checker == !bench.helper_of[i]);
    bench_close(&bench);
    spec_free(&spec);
    json_decref(request);
    return parsed / CODE_BYTES;
}

static void test_check__reads_the_program_once_for_all_cases(void **state)
{
    (void)state;
    size_t helpers;
    json_t *cases = json_array();
    for (int i = 0; i < CASES; i++)
        json_array_append_new(cases, json_pack("{s:[s], s:{s:i}}", "args", "x", "limits", "wall_ms", 1000 + i));
    assert_true(check(json_pack("{s:o}", "cases", cases), &helpers) <= 1);
    assert_int_equal(helpers, 0);
}

static void test_check__opens_a_checker_for_all_cases_once(void **state)
{
    (void)state;
    size_t helpers;
    auto_free char *code = large_code();
    json_t *cases = json_array();
    for (int i = 0; i < CASES; i++)
        json_array_append_new(cases, i % 2 ? json_object() : json_pack("{s:{s:s}}", "checker", "language", "bash"));
    for (int i = 0; i < CASES; i += 2)
        json_object_set_new(json_object_get(json_array_get(cases, (size_t)i), "checker"), "code",
                            json_sprintf("exit %d", i));
    json_t *tests = json_pack("{s:o, s:{s:s, s:s}}", "cases", cases, "checker", "language", "bash", "code", code);
    assert_true(check(tests, &helpers) <= 4);
    assert_int_equal(helpers, 1 + CASES / 2);
}

/* What one case was given is not seen in the next. */
static void test_check__judges_each_case_by_its_own_arguments_and_limits(void **state)
{
    (void)state;
    auto_free char *long_text = malloc(100001);
    memset(long_text, 'x', 100000);
    long_text[100000] = '\0';
    size_t helpers;
    json_t *cases = json_array(), *args = json_array();
    for (int i = 0; i < 8; i++)
        json_array_append_new(args, json_string(long_text));
    for (int i = 0; i < 4; i++)
        json_array_append_new(cases, json_pack("{s:O}", "args", args));
    json_array_append_new(cases, json_pack("{s:{s:s, s:s}}", "limits", "memory_bytes", "64m", "disk_bytes", "64m"));
    json_array_append_new(cases, json_pack("{s:{s:s}}", "limits", "disk_bytes", "128m"));
    check(json_pack("{s:o}", "cases", cases), &helpers);
    json_decref(args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check__reads_the_program_once_for_all_cases),
        cmocka_unit_test(test_check__opens_a_checker_for_all_cases_once),
        cmocka_unit_test(test_check__judges_each_case_by_its_own_arguments_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
