/* The shape of `tests`: defaults that hold for every case, and for each refusal the pointer and the wording. */
#include "judge/spec.h"

#include "unit.h"

static struct spec read_good(const char *json, json_t **tests)
{
    struct spec spec;
    cordon_error err;
    *tests = json_loads(json, JSON_ALLOW_NUL, NULL);
    assert_non_null(*tests);
    assert_ok(spec_read(*tests, &spec, &err), &err);
    return spec;
}

static void test_spec__defaults_and_overrides(void **state)
{
    (void)state;
    json_t *tests;
    struct spec spec = read_good(
        "{\"stop\": \"first_failure\", \"match\": \"float\", \"tolerance\": 0.5, \"limits\": {\"wall_ms\": 1},"
        " \"cases\": [{}, {\"name\": \"n\", \"match\": \"exact\", \"expected\": \"x\", \"stdin\": \"a\\u0000b\"},"
        "  {\"checker\": {\"language\": \"python\", \"code\": \"1\"}, \"tolerance\": 0},"
        "  {\"stdin\": {\"base64\": \"AP8=\"}, \"expected\": {\"base64\": \"\"}}]}",
        &tests);
    assert_int_equal(spec.count, 4);
    assert_true(spec.stop_at_failure);
    assert_non_null(spec.limits);
    assert_string_equal(spec.cases[0].name, "case 1");
    assert_int_equal(spec.cases[0].match, MATCH_FLOAT);
    assert_true(spec.cases[0].tolerance == 0.5);
    assert_false(spec.cases[0].has_input || spec.cases[0].has_expected);
    assert_string_equal(spec.cases[1].name, "n");
    assert_int_equal(spec.cases[1].match, MATCH_EXACT);
    assert_int_equal(spec.cases[1].input.length, 3);
    assert_int_equal(spec.cases[2].match, MATCH_CHECKER);
    assert_non_null(spec.cases[2].checker);
    assert_int_equal(spec.cases[3].input.length, 2);
    assert_memory_equal(spec.cases[3].input.data, "\0\377", 2);
    assert_true(spec.cases[3].has_expected);
    spec_free(&spec);
    json_decref(tests);
}

static void test_spec__a_case_may_leave_the_common_checker(void **state)
{
    (void)state;
    json_t *tests;
    struct spec spec = read_good("{\"checker\": {\"language\": \"c\", \"code\": \"1\"}, \"cases\": [{},"
                                 " {\"match\": \"tokens\", \"expected\": \"1\"}, {\"match\": \"checker\"},"
                                 " {\"interactor\": {\"language\": \"c\", \"code\": \"2\"}}]}",
                                 &tests);
    assert_non_null(spec.cases[0].checker);
    assert_null(spec.cases[1].checker);
    assert_int_equal(spec.cases[1].match, MATCH_TOKENS);
    assert_ptr_equal(spec.cases[2].checker, spec.cases[0].checker);
    assert_null(spec.cases[3].checker);
    assert_non_null(spec.cases[3].interactor);
    spec_free(&spec);
    json_decref(tests);
}

static void test_spec__framework(void **state)
{
    (void)state;
    json_t *tests;
    struct spec spec = read_good("{\"framework\": \"pytest\", \"files\": {\"test_a.py\": \"\"}}", &tests);
    assert_null(spec.cases);
    assert_string_equal(spec.framework, "pytest");
    spec_free(&spec);
    json_decref(tests);
}

static const struct {
    const char *json, *field, *part;
} bad[] = {
    {"[]", "/tests", "an array is given; expected an object"},
    {"{}", "/tests", "neither cases nor a framework"},
    {"{\"cases\": [{}], \"framework\": \"go\"}", "/tests", "both cases and a framework"},
    {"{\"cases\": []}", "/tests/cases", "there are 0 cases; expected 1 to"},
    {"{\"cases\": {}}", "/tests/cases", "expected an array of cases"},
    {"{\"cases\": [{}, 5]}", "/tests/cases/1", "a number is given; expected an object"},
    {"{\"cases\": [{\"expcted\": \"1\"}]}", "/tests/cases/0/expcted", "did you mean 'expected'"},
    {"{\"cases\": [{}], \"stpo\": 1}", "/tests/stpo", "did you mean 'stop'"},
    {"{\"cases\": [{}], \"stop\": \"firstfailure\"}", "/tests/stop", "first_failure"},
    {"{\"cases\": [{\"match\": \"exakt\"}]}", "/tests/cases/0/match", "did you mean 'exact'"},
    {"{\"cases\": [{\"match\": \"trim\"}]}", "/tests/cases/0/expected", "expected is missing"},
    {"{\"cases\": [{\"match\": \"checker\"}]}", "/tests/cases/0/checker", "there is none"},
    {"{\"cases\": [{\"stdin\": 1}]}", "/tests/cases/0/stdin", "a number is given"},
    {"{\"cases\": [{\"stdin\": {\"base64\": \"?\"}}]}", "/tests/cases/0/stdin/base64", "not base64"},
    {"{\"cases\": [{\"expected\": {\"b64\": \"?\"}}]}", "/tests/cases/0/expected/b64", "no field"},
    {"{\"cases\": [{\"tolerance\": -1}]}", "/tests/cases/0/tolerance", "from 0 on"},
    {"{\"cases\": [{\"tolerance\": \"x\"}]}", "/tests/cases/0/tolerance", "expected a number"},
    {"{\"cases\": [{\"name\": \"a\\u0000b\"}]}", "/tests/cases/0/name", "NUL"},
    {"{\"cases\": [{\"checker\": {\"code\": \"1\"}}]}", "/tests/cases/0/checker", "has no language"},
    {"{\"cases\": [{\"checker\": \"x\"}]}", "/tests/cases/0/checker", "expected an object"},
    {"{\"cases\": [{\"checker\": {\"language\": \"c\", \"args\": []}}]}", "/tests/cases/0/checker/args", "no field"},
    {"{\"cases\": [{\"checker\": {\"language\": \"c\"}, \"match\": \"trim\"}]}", "/tests/cases/0/match", "beside"},
    {"{\"cases\": [{\"checker\": {\"language\": \"c\"}, \"interactor\": {\"language\": \"c\"}}]}",
     "/tests/cases/0/interactor", "both"},
    {"{\"cases\": [{\"interactor\": {\"language\": \"c\"}, \"stdin\": \"1\"}]}", "/tests/cases/0/stdin",
     "an interactor gives"},
    {"{\"framework\": \"go\"}", "/tests/files", "no test files"},
    {"{\"framework\": \"go\", \"files\": {}}", "/tests/files", "no test files"},
    {"{\"framework\": 5, \"files\": {\"a\": \"\"}}", "/tests/framework", "expected a string"},
    {"{\"framework\": \"go\", \"files\": {\"a\": \"\"}, \"stop\": \"never\"}", "/tests/stop", "no field"},
};

static void test_spec__refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *tests = json_loads(bad[i].json, JSON_ALLOW_NUL, NULL);
        struct spec spec;
        cordon_error err = {0};
        assert_non_null(tests);
        if (spec_read(tests, &spec, &err) != CORDON_EINVAL)
            print_error("%s was not refused\n", bad[i].json);
        assert_error(&err, bad[i].field, bad[i].part);
        json_decref(tests);
    }
    struct spec spec;
    cordon_error err = {0};
    assert_int_equal(spec_read(NULL, &spec, &err), CORDON_EINVAL);
    assert_error(&err, "/tests", "there are no tests");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec__defaults_and_overrides),
        cmocka_unit_test(test_spec__a_case_may_leave_the_common_checker),
        cmocka_unit_test(test_spec__framework),
        cmocka_unit_test(test_spec__refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
