/* Runs one line of Python in a cell and prints how it ended. See "As a C library" in README.md. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

static int report(const cordon_error *err)
{
    fprintf(stderr, "%s%s%s%s\n", err->text, *err->hint ? " (" : "", err->hint, *err->hint ? ")" : "");
    return 1;
}

int main(void)
{
    static const char code[] = "print(6 * 7)";
    cordon_engine *engine = NULL;
    cordon_request *request = cordon_request_new();
    cordon_result *result = NULL;
    cordon_error err = {0};
    int failed = request == NULL;

    if (failed || cordon_engine_open(NULL, &engine, &err) || cordon_request_set_language(request, "python", &err) ||
        cordon_request_set_code(request, code, strlen(code), &err) ||
        cordon_request_set_limit(request, "wall_ms", "2s", &err) ||
        cordon_execute(engine, request, NULL, &result, &err))
        failed = report(&err);
    else
        printf("%s: %s", cordon_status_name(cordon_result_status(result)), cordon_result_stdout(result, NULL));

    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
    return failed;
}
