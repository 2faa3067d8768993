/* Runs whose caller waits for the end alone: their start is told late, and what they print lies in its pipe until then.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api.h"

static cordon_engine *engine;

/* With a limit of its own, so that no cell that was offered fits. */
static cordon_result *execute(const char *language, const char *code, const char *wall)
{
    cordon_request *request = new_request(language, code);
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(!cordon_request_set_limit(request, "wall_ms", wall, &err), "%s", err.text);
    CHECK(!cordon_execute(engine, request, NULL, &result, &err), "%s", err.text);
    cordon_request_free(request);
    return result;
}

static void expect(const char *code, cordon_status status, const char *wall, size_t length, const char *beginning)
{
    size_t printed = 0;
    cordon_result *result = execute("python", code, wall);
    const char *text = cordon_result_stdout(result, &printed);
    CHECK(cordon_result_status(result) == status && printed == length && !strncmp(text, beginning, strlen(beginning)),
          "%zu bytes: %.300s", printed, cordon_result_json(result));
    cordon_result_free(result);
}

static void test_programs(void)
{
    expect("print('short')", CORDON_STATUS_OK, "9s", 6, "short\n");
    /* There is nothing to read, and the program must not wait for it. */
    expect("import sys\nprint(len(sys.stdin.read()))", CORDON_STATUS_OK, "9s", 2, "0\n");
    /* More than a pipe holds, at once and later. */
    expect("print('x' * 999999)", CORDON_STATUS_OK, "9s", 1000000, "xxx");
    expect("import time\nprint('a', flush=True)\ntime.sleep(0.05)\nprint('x' * 299997)", CORDON_STATUS_OK, "9s", 300000,
           "a\nxxx");
    expect("print('seen', flush=True)\nwhile True: pass", CORDON_STATUS_WALL_LIMIT, "300ms", 5, "seen\n");

    cordon_result *result = execute("javascript", "console.log('one'); 40 + 2", "9s");
    CHECK(!strcmp(cordon_result_stdout(result, NULL), "one\n42\n") &&
              strstr(cordon_result_json(result), "\"value\":42"),
          "%.300s", cordon_result_json(result));
    cordon_result_free(result);
}

void test_quiet(void)
{
    for (int warm = 0; warm < 2; warm++) {
        engine_options.warm = warm;
        engine = open_engine();
        test_programs();
        test_programs(); /* in cells that wait by now, if any do */
        cordon_engine_close(engine);
    }
}
