/* Runs a program against three cases and prints what became of each. See "From C" in docs/TESTS.md. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

static const char program[] = "print(int(input()) * 2)";

static int add_case(cordon_request *request, const char *input, const char *expected, cordon_error *err)
{
    return cordon_request_add_test_case(request, NULL, input, strlen(input), expected, strlen(expected), err);
}

static void report(const cordon_result *result)
{
    cordon_test test = CORDON_TEST_INIT;
    for (size_t i = 0; cordon_result_test(result, i, &test); i++)
        printf("%s: %s%s%s\n", test.name, test.status, test.reason ? ": " : "", test.reason ? test.reason : "");
    printf("%s\n", cordon_result_success(result) ? "all passed" : "not all passed");
}

int main(void)
{
    cordon_engine *engine = NULL;
    cordon_request *request = cordon_request_new();
    cordon_judge_options options = CORDON_JUDGE_OPTIONS_INIT;
    cordon_result *result = NULL;
    cordon_error err = {0};
    int failed = request == NULL;

    options.parallel = 2;
    if (failed || cordon_engine_open(NULL, &engine, &err) || cordon_request_set_language(request, "python", &err) ||
        cordon_request_set_code(request, program, strlen(program), &err) || add_case(request, "1", "2", &err) ||
        add_case(request, "2", "5", &err) || add_case(request, "x", "", &err) ||
        cordon_judge(engine, request, &options, &result, &err)) {
        fprintf(stderr, "%s%s%s\n", err.text, *err.hint ? "; " : "", err.hint);
        failed = 1;
    } else
        report(result);

    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
    return failed;
}
