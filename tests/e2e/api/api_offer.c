/* Runs in cells that the warden offered ahead: it is told of them beside, and they end like any other. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"

#define TRIES 200 /* of 10 ms */

static cordon_engine *engine;

static void pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

/* As often as it takes for what is asked to be so. */
static bool becomes(bool (*is_so)(void))
{
    for (int i = 0; i < TRIES; i++, pause_ms(10))
        if (is_so())
            return true;
    return false;
}

static long served(void)
{
    char *json = NULL;
    cordon_error err = {0};
    long most = 0;
    CHECK(!cordon_pools(engine, &json, &err), "%s", err.text);
    for (const char *at = json; (at = strstr(at, "\"served\":")); at++) {
        long number = strtol(at + strlen("\"served\":"), NULL, 10);
        most = number > most ? number : most;
    }
    cordon_free(json);
    return most;
}

/* The program names its process so that it can be found from outside. */
static char mark[16];

static bool is_there(void)
{
    DIR *proc = opendir("/proc");
    CHECK(proc, "/proc");
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(proc));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        FILE *file = *entry->d_name >= '0' && *entry->d_name <= '9' ? fopen(path, "r") : NULL;
        found = file && fgets(name, sizeof name, file) && !strncmp(name, mark, strlen(mark));
        if (file)
            fclose(file);
    }
    closedir(proc);
    return found;
}

static bool is_gone(void)
{
    return !is_there();
}

/* A run in a cell that was offered, so far as one can tell from here: nothing else wants a processor, so one was. */
static cordon_run *start(const cordon_request *request)
{
    cordon_run *run = NULL;
    cordon_error err = {0};
    pause_ms(100);
    CHECK(!cordon_run_start(engine, request, NULL, &run, &err), "%s", err.text);
    return run;
}

static void test_sleeper(const cordon_request *sleeper)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    long before = served();
    cordon_run *run = start(sleeper);
    CHECK(becomes(is_there), "it does not run");
    CHECK(served() == before + 1, "the warden knows of %ld runs after %ld", served(), before);
    cordon_run_cancel(run);
    CHECK(!cordon_run_wait(run, &result, &err), "%s", err.text);
    CHECK(cordon_result_status(result) == CORDON_STATUS_CANCELLED, "%s", cordon_result_json(result));
    CHECK(strstr(cordon_result_json(result), "\"warm\":true"), "%s", cordon_result_json(result));
    cordon_result_free(result);
    cordon_run_free(run);
    CHECK(becomes(is_gone), "a cancelled program is still there");

    run = start(sleeper);
    CHECK(becomes(is_there), "it does not run");
    cordon_run_free(run);
    CHECK(becomes(is_gone), "the program of a run that was freed is still there");
}

static void test_output(const char *code, const char *input, size_t expected)
{
    cordon_request *request = new_request("python", code);
    cordon_result *result = NULL;
    cordon_error err = {0};
    size_t length = 0;
    if (input)
        CHECK(!cordon_request_set_stdin(request, input, strlen(input), &err), "%s", err.text);
    pause_ms(100);
    CHECK(!cordon_execute(engine, request, NULL, &result, &err), "%s", err.text);
    cordon_result_stdout(result, &length);
    CHECK(cordon_result_status(result) == CORDON_STATUS_OK && length == expected, "%zu bytes: %.300s", length,
          cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(request);
}

void test_offer(void)
{
    char code[256];
    cordon_error err = {0};
    engine_options.warm = true;
    engine = open_engine();
    snprintf(mark, sizeof mark, "of-%d", (int)getpid());
    snprintf(code, sizeof code, "import os\nos.execv('/bin/sleep', ['%s', '30'])", mark);
    cordon_request *sleeper = new_request("python", code);
    CHECK(cordon_engine_warm(engine, sleeper, 2, 20000, &err) > 0, "%s", err.text);
    test_sleeper(sleeper);
    test_output("print('on')", NULL, 3);
    /* Longer than anybody waits without looking, and more than a pipe holds. */
    test_output("import time\ntime.sleep(0.05)\nprint('x' * 299999)", NULL, 300000);
    test_output("import sys\nprint(sys.stdin.read(), end='')", "some lines\nof input\n", 20);
    cordon_request_free(sleeper);
    cordon_engine_close(engine);
}
