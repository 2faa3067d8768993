/* The C library as an outside program uses it: threads on one engine, callbacks, cancelling, an event loop, errors.
 *
 * Usage: api_test TEST [LANGUAGES_DIR WARDEN_PATH [OPTIONAL_CONTROL]]. Exits 0, or prints what was not so. */
#include "api.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

cordon_engine_options engine_options = CORDON_ENGINE_OPTIONS_INIT;
const char *optional_control;

void fail(int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "line %d: not so: %s: ", line, condition);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

cordon_engine *open_engine(void)
{
    cordon_engine *engine = NULL;
    cordon_error err = {0};
    int code = cordon_engine_open(&engine_options, &engine, &err);
    CHECK(code == 0, "%s: %s", err.step, err.text);
    return engine;
}

cordon_request *new_request(const char *language, const char *code)
{
    cordon_error err = {0};
    cordon_request *request = cordon_request_new();
    CHECK(request, "out of memory");
    CHECK(!cordon_request_set_language(request, language, &err), "%s", err.text);
    CHECK(!cordon_request_set_code(request, code, strlen(code), &err), "%s", err.text);
    if (optional_control)
        CHECK(!cordon_request_add_optional(request, optional_control, &err), "%s", err.text);
    return request;
}

static cordon_request *request_from(const char *json, cordon_error *err)
{
    cordon_request *request = NULL;
    int code = cordon_request_from_json(json, strlen(json), &request, err);
    CHECK((code == 0) == (request != NULL), "code %d", code);
    if (request && optional_control)
        CHECK(!cordon_request_add_optional(request, optional_control, err), "%s", err->text);
    return request;
}

static cordon_result *execute(cordon_engine *engine, const cordon_request *request)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    int code = cordon_execute(engine, request, NULL, &result, &err);
    CHECK(code == 0, "%d %s: %s (%s)", code, err.step, err.text, err.hint);
    return result;
}

static void test_one(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("python", "import sys\nprint(6*7)\nprint('e', file=sys.stderr)\nsys.exit(3)");
    for (int i = 0; i < 3; i++) {
        cordon_result *result = execute(engine, request);
        size_t length = 0;
        CHECK(cordon_result_status(result) == CORDON_STATUS_NONZERO_EXIT, "%s",
              cordon_status_name(cordon_result_status(result)));
        CHECK(cordon_result_exit_code(result) == 3, "%d", cordon_result_exit_code(result));
        CHECK(cordon_result_process_exit_code(result) == 3, "%d", cordon_result_process_exit_code(result));
        CHECK(cordon_result_signal(result) == 0, "%d", cordon_result_signal(result));
        CHECK(!strcmp(cordon_result_stdout(result, &length), "42\n"), "%s", cordon_result_stdout(result, NULL));
        CHECK(length == 3, "%zu", length);
        CHECK(!strcmp(cordon_result_stderr(result, NULL), "e\n"), "%s", cordon_result_stderr(result, NULL));
        CHECK(cordon_result_wall_us(result) > 0, "no time");
        CHECK(!cordon_result_cut(result, 1, &length), "nothing was cut");
        CHECK(strstr(cordon_result_json(result), "\"nonzero_exit\""), "%s", cordon_result_json(result));
        cordon_result_free(result);
    }
    cordon_request_free(request);
    cordon_engine_close(engine);
}

static void test_limits(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("bash", "yes | head -c 100000; sleep 20");
    cordon_error err = {0};
    size_t offset = 0;
    CHECK(!cordon_request_set_limit(request, "wall_ms", "400ms", &err), "%s", err.text);
    CHECK(!cordon_request_set_limit(request, "output_bytes", "4k", &err), "%s", err.text);
    cordon_result *result = execute(engine, request);
    CHECK(cordon_result_status(result) == CORDON_STATUS_WALL_LIMIT, "%s", cordon_result_json(result));
    CHECK(cordon_result_exit_code(result) == -1, "%d", cordon_result_exit_code(result));
    CHECK(cordon_result_signal(result) == 9, "%d", cordon_result_signal(result));
    CHECK(cordon_result_process_exit_code(result) == 124, "%d", cordon_result_process_exit_code(result));
    CHECK(cordon_result_reason(result) && strstr(cordon_result_reason(result), "wall"), "no reason");
    CHECK(cordon_result_cut(result, 1, &offset) && offset == 3072, "cut at %zu", offset);
    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
}

struct heard {
    char bytes[3][256];
    size_t length[3];
    int calls;
    double first;
};

static void hear(void *context, int stream, const void *bytes, size_t length)
{
    struct heard *heard = context;
    CHECK(stream == 1 || stream == 2, "stream %d", stream);
    CHECK(length > 0 && heard->length[stream] + length < sizeof heard->bytes[stream], "%zu bytes", length);
    memcpy(heard->bytes[stream] + heard->length[stream], bytes, length);
    heard->length[stream] += length;
    if (!heard->calls++)
        heard->first = now();
}

static void test_callbacks(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("bash", "echo one; sleep 0.5; echo two >&2; cat");
    struct heard heard = {0};
    int feed[2];
    CHECK(!pipe(feed), "pipe");
    CHECK(write(feed[1], "three\n", 6) == 6, "write");
    close(feed[1]);
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    options.on_output = hear;
    options.context = &heard;
    options.stdin_fd = feed[0];
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(!cordon_execute(engine, request, &options, &result, &err), "%s", err.text);
    CHECK(heard.calls >= 3, "%d calls", heard.calls);
    CHECK(now() - heard.first > 0.3, "the first bytes came with the last");
    CHECK(!strcmp(heard.bytes[1], "one\nthree\n"), "%s", heard.bytes[1]);
    CHECK(!strcmp(heard.bytes[2], "two\n"), "%s", heard.bytes[2]);
    CHECK(!strcmp(cordon_result_stdout(result, NULL), "one\nthree\n"), "%s", cordon_result_stdout(result, NULL));
    close(feed[0]);
    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
}

enum { THREADS = 8, RUNS = 5 };

struct worker {
    cordon_engine *engine;
    int number;
};

static void *work(void *context)
{
    struct worker *worker = context;
    for (int i = 0; i < RUNS; i++) {
        char code[64], expected[32];
        snprintf(code, sizeof code, "echo %d-%d; exit %d", worker->number, i, worker->number);
        snprintf(expected, sizeof expected, "%d-%d\n", worker->number, i);
        cordon_request *request = new_request("bash", code);
        cordon_result *result = execute(worker->engine, request);
        CHECK(!strcmp(cordon_result_stdout(result, NULL), expected), "%s", cordon_result_json(result));
        CHECK(cordon_result_exit_code(result) == worker->number, "%s", cordon_result_json(result));
        cordon_result_free(result);
        cordon_request_free(request);
    }
    return NULL;
}

static void test_threads(void)
{
    cordon_engine *engine = open_engine();
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){engine, i};
        CHECK(!pthread_create(&threads[i], NULL, work, &workers[i]), "thread %d", i);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cordon_engine_close(engine);
}

static void *cancel_later(void *run)
{
    usleep(300 * 1000);
    cordon_run_cancel(run);
    return NULL;
}

static cordon_run *start(cordon_engine *engine, const cordon_request *request)
{
    cordon_run *run = NULL;
    cordon_error err = {0};
    int code = cordon_run_start(engine, request, NULL, &run, &err);
    CHECK(code == 0, "%s: %s", err.step, err.text);
    return run;
}

static void test_cancel(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("bash", "sleep 30");
    cordon_run *run = start(engine, request);
    pthread_t thread;
    double begin = now();
    CHECK(!pthread_create(&thread, NULL, cancel_later, run), "thread");
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(!cordon_run_wait(run, &result, &err), "%s", err.text);
    CHECK(now() - begin < 3, "%.2f s", now() - begin);
    CHECK(cordon_result_status(result) == CORDON_STATUS_CANCELLED, "%s", cordon_result_json(result));
    CHECK(cordon_result_process_exit_code(result) == 130, "%d", cordon_result_process_exit_code(result));
    pthread_join(thread, NULL);
    cordon_run_cancel(run);
    cordon_run_free(run);
    cordon_result_free(result);

    /* Cancelled before it could begin, twice; and freed in mid-run. */
    run = start(engine, request);
    cordon_run_cancel(run);
    cordon_run_cancel(run);
    CHECK(!cordon_run_wait(run, &result, &err), "%s", err.text);
    CHECK(cordon_result_status(result) == CORDON_STATUS_CANCELLED, "%s", cordon_result_json(result));
    cordon_run_free(run);
    cordon_result_free(result);
    run = start(engine, request);
    begin = now();
    cordon_run_free(run);
    CHECK(now() - begin < 2, "%.2f s to free a run", now() - begin);

    /* The engine is as good as before. */
    cordon_request *other = new_request("bash", "echo fine");
    result = execute(engine, other);
    CHECK(!strcmp(cordon_result_stdout(result, NULL), "fine\n"), "%s", cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(other);
    cordon_request_free(request);
    cordon_engine_close(engine);
}

static void test_loop(void)
{
    enum { COUNT = 4 };
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("bash", "echo a; sleep 0.2; echo b");
    cordon_run *runs[COUNT];
    struct pollfd fds[COUNT];
    for (int i = 0; i < COUNT; i++) {
        runs[i] = start(engine, request);
        fds[i] = (struct pollfd){.fd = cordon_run_fd(runs[i]), .events = POLLIN};
        CHECK(fds[i].fd >= 0, "no descriptor");
    }
    int left = COUNT, idle = 0;
    double deadline = now() + 10;
    while (left) {
        int ready = poll(fds, COUNT, 1000);
        CHECK(now() < deadline, "%d runs left", left);
        idle += ready == 0;
        for (int i = 0; i < COUNT; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            cordon_error err = {0};
            double begin = now();
            int done = cordon_run_dispatch(runs[i], &err);
            CHECK(done >= 0, "%s", err.text);
            CHECK(now() - begin < 0.15, "dispatch blocked for %.3f s", now() - begin);
            if (done) {
                fds[i].fd = -1;
                left--;
            }
        }
    }
    CHECK(idle == 0, "the descriptors were silent for a second");
    for (int i = 0; i < COUNT; i++) {
        cordon_result *result = NULL;
        cordon_error err = {0};
        CHECK(!cordon_run_wait(runs[i], &result, &err), "%s", err.text);
        CHECK(!strcmp(cordon_result_stdout(result, NULL), "a\nb\n"), "%s", cordon_result_json(result));
        cordon_result_free(result);
        cordon_run_free(runs[i]);
    }
    cordon_request_free(request);
    cordon_engine_close(engine);
}

static void test_json(void)
{
    cordon_engine *engine = open_engine();
    cordon_error err = {0};
    cordon_request *request = request_from(
        "{\"language\":\"py\",\"files\":{\"main.py\":\"import h,sys,os;sys.stdout.buffer.write(bytes([255,0])+h.x+"
        "sys.stdin.buffer.read()+sys.argv[1].encode()+os.environ['A'].encode()+os.environ['S'].encode())\","
        "\"h.py\":{\"base64\":\"eCA9IGInaCcK\"}},\"entry\":\"main.py\",\"stdin\":\"in\",\"args\":[\"arg\"],"
        "\"env\":{\"A\":\"a\",\"S\":{\"value\":\"s\",\"secret\":false}},\"profile\":\"lightweight\","
        "\"limits\":{\"wall_ms\":3000,\"memory_bytes\":\"100m\",\"cpus\":0.5},\"output_encoding\":\"base64\"}",
        &err);
    CHECK(request, "%s %s", err.field, err.text);
    cordon_result *result = execute(engine, request);
    size_t length = 0;
    CHECK(cordon_result_status(result) == CORDON_STATUS_OK, "%s", cordon_result_json(result));
    const char *out = cordon_result_stdout(result, &length);
    CHECK(length == 10 && !memcmp(out, "\xff\0hinargas", 10), "%zu bytes", length);
    CHECK(strstr(cordon_result_json(result), "\"/wBoaW5hcmdhcw==\""), "%s", cordon_result_json(result));
    CHECK(strstr(cordon_result_json(result), "104857600"), "%s", cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(request);
    cordon_engine_close(engine);
}

static void test_bad_json(void)
{
    static const struct {
        const char *json, *field;
    } cases[] = {
        {"", ""},
        {"nonsense", ""},
        {"[]", ""},
        {"{\"language\":\"python\",\"code\":\"1\"} x", ""},
        {"{\"language\":5,\"code\":\"1\"}", "/language"},
        {"{\"language\":\"python\",\"code\":[]}", "/code"},
        {"{\"language\":\"python\",\"code\":\"1\",\"cdoe\":\"1\"}", "/cdoe"},
        {"{\"language\":\"python\",\"code\":\"1\",\"limits\":{\"wall_ms\":0}}", "/limits/wall_ms"},
        {"{\"language\":\"python\",\"code\":\"1\",\"limits\":{\"wall_ms\":-1}}", "/limits/wall_ms"},
        {"{\"language\":\"python\",\"code\":\"1\",\"limits\":{\"wall_ms\":1e300}}", "/limits/wall_ms"},
        {"{\"language\":\"python\",\"code\":\"1\",\"limits\":{\"memory_bytes\":\"12q\"}}", "/limits/memory_bytes"},
        {"{\"language\":\"python\",\"code\":\"1\",\"limits\":{\"wal_ms\":5}}", "/limits/wal_ms"},
        {"{\"language\":\"python\",\"code\":\"1\",\"args\":[\"a\\u0000b\"]}", "/args/0"},
        {"{\"language\":\"python\",\"code\":\"1\",\"args\":\"a\"}", "/args"},
        {"{\"language\":\"python\",\"code\":\"1\",\"env\":{\"A\\u0000\":\"b\"}}", ""},
        {"{\"language\":\"python\",\"code\":\"1\",\"env\":{\"A\":\"b\\u0000\"}}", "/env/A"},
        {"{\"language\":\"python\",\"code\":\"1\",\"env\":{\"A=B\":\"c\"}}", "/env"},
        {"{\"language\":\"python\",\"files\":{\"../x\":\"1\"}}", "/files"},
        {"{\"language\":\"python\",\"files\":{\"/x\":\"1\"}}", "/files"},
        {"{\"language\":\"python\",\"files\":{\"x\":{\"base64\":\"***\"}}}", "/files"},
        {"{\"language\":\"python\",\"code\":\"1\",\"optional\":[\"cgruop\"]}", "/optional"},
        {"{\"language\":\"python\",\"code\":\"1\",\"profile\":\"big\"}", "/profile"},
        {"{\"language\":\"python\",\"code\":\"1\",\"on_output_limit\":\"x\"}", "/on_output_limit"},
        {"{\"language\":\"python\",\"code\":\"1\",\"output_encoding\":\"x\"}", "/output_encoding"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cordon_request *request = NULL;
        cordon_error err = {0};
        int code = cordon_request_from_json(cases[i].json, strlen(cases[i].json), &request, &err);
        CHECK(code == CORDON_EINVAL && !request, "%d for %s", code, cases[i].json);
        CHECK(err.code == code && *err.text && !strchr(err.text, '\n'), "'%s' for %s", err.text, cases[i].json);
        CHECK(!strncmp(err.field, cases[i].field, strlen(cases[i].field)), "field '%s' for %s", err.field,
              cases[i].json);
        CHECK(cordon_request_from_json(cases[i].json, strlen(cases[i].json), &request, NULL) == code,
              "without an error to fill");
    }
}

static void refused(cordon_engine *engine, cordon_request *request, int expected, const char *word)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    int code = cordon_execute(engine, request, NULL, &result, &err);
    CHECK(code == expected && !result, "%d (%s), wanted %d", code, err.text, expected);
    CHECK(strstr(err.text, word) || strstr(err.hint, word), "'%s (%s)' without '%s'", err.text, err.hint, word);
    cordon_request_free(request);
}

static void test_errors(void)
{
    cordon_error err = {0};
    cordon_engine *engine = NULL;
    cordon_engine_options options = engine_options;
    options.warden_path = "/nonexistent/warden";
    cordon_request *request = new_request("bash", ":");
    int code = cordon_engine_open(&options, &engine, &err);
    if (code == 0) {
        cordon_result *result = NULL;
        code = cordon_execute(engine, request, NULL, &result, &err);
        CHECK(code < 0 && !result, "ran without a warden");
        cordon_engine_close(engine);
    }
    CHECK(strstr(err.text, "warden"), "%s", err.text);
    cordon_request_free(request);

    engine = open_engine();
    request = cordon_request_new();
    refused(engine, request, CORDON_EINVAL, "language");
    request = cordon_request_new();
    CHECK(!cordon_request_set_language(request, "python", &err), "%s", err.text);
    refused(engine, request, CORDON_EINVAL, "code");
    refused(engine, new_request("pyhton", "1"), CORDON_ENOTFOUND, "python");
    request = new_request("python", "1");
    CHECK(cordon_request_add_file(request, "../x", "x", 1, &err) == CORDON_EINVAL, "../x");
    CHECK(cordon_request_add_file(request, "a\0b", "x", 1, NULL) == 0, "a name ends at its NUL");
    CHECK(cordon_request_set_limit(request, "wall_ms", "0", &err) == CORDON_EINVAL, "zero");
    CHECK(cordon_request_set_limit(request, "nope", "1", &err) == CORDON_EINVAL, "unknown limit");
    CHECK(cordon_request_set_limit(request, "memory_bytes", "64m", &err) == 0, "%s", err.text);
    CHECK(cordon_request_set_limit(request, "disk_bytes", "65m", &err) == 0, "%s", err.text);
    refused(engine, request, CORDON_EINVAL, "disk");
    request = cordon_request_new();
    CHECK(!cordon_request_set_language(request, "python", &err), "%s", err.text);
    CHECK(!cordon_request_add_file(request, "main.py", "1", 1, &err), "%s", err.text);
    CHECK(!cordon_request_set_entry(request, "missing.py", &err), "%s", err.text);
    refused(engine, request, CORDON_EINVAL, "missing.py");

    char *json = NULL;
    CHECK(!cordon_languages(engine, &json, &err), "%s", err.text);
    CHECK(strstr(json, "\"python\""), "%s", json);
    cordon_free(json);
    json = NULL;
    CHECK(!cordon_doctor(engine, &json, &err), "%s", err.text);
    CHECK(strstr(json, "userns"), "%s", json);
    cordon_free(json);
    CHECK(strchr(cordon_version(), '.'), "%s", cordon_version());
    cordon_engine_close(engine);
    cordon_engine_close(NULL);
    cordon_request_free(NULL);
    cordon_result_free(NULL);
    cordon_run_free(NULL);
}

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* The library is a guest: no signal disposition, no child that a host's wait() would find, no descriptor stays. */
static void test_guest(void)
{
    int before = open_descriptors();
    struct sigaction old[65], seen;
    sigset_t mask, mask_after;
    for (int i = 1; i <= 64; i++)
        sigaction(i, NULL, &old[i]);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("bash", "echo x");
    cordon_result_free(execute(engine, request));
    int between = open_descriptors();
    for (int i = 0; i < 10; i++)
        cordon_result_free(execute(engine, request));
    CHECK(open_descriptors() == between, "descriptors grow with each run: %d, %d", between, open_descriptors());
    for (int i = 1; i <= 64; i++) {
        /* The C library keeps two for itself and tells nothing of them. */
        if (sigaction(i, NULL, &seen) == 0)
            CHECK(seen.sa_handler == old[i].sa_handler, "signal %d was changed", i);
    }
    sigprocmask(SIG_BLOCK, NULL, &mask_after);
    CHECK(!memcmp(&mask, &mask_after, sizeof mask), "the signal mask was changed");
    cordon_request_free(request);
    cordon_engine_close(engine);
    CHECK(open_descriptors() == before, "%d descriptors before, %d after", before, open_descriptors());
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1, "a child was left to the host");
}

/* A host that ignores SIGCHLD or reaps every child by itself. */
static void test_reaping_host(void)
{
    signal(SIGCHLD, SIG_IGN);
    test_one();
}

static void test_close_kills(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = new_request("bash", "sleep 30");
    cordon_run *run = start(engine, request);
    usleep(100 * 1000);
    double begin = now();
    cordon_engine_close(engine);
    CHECK(now() - begin < 2, "%.2f s to close", now() - begin);
    cordon_result *result = NULL;
    cordon_error err = {0};
    int code = cordon_run_wait(run, &result, &err);
    CHECK(now() - begin < 3, "%.2f s", now() - begin);
    CHECK(code == CORDON_EGONE || (code == 0 && cordon_result_status(result) != CORDON_STATUS_OK), "%d", code);
    cordon_result_free(result);
    cordon_run_free(run);
    cordon_request_free(request);
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"one", test_one},
    {"limits", test_limits},
    {"callbacks", test_callbacks},
    {"threads", test_threads},
    {"cancel", test_cancel},
    {"loop", test_loop},
    {"json", test_json},
    {"bad_json", test_bad_json},
    {"errors", test_errors},
    {"guest", test_guest},
    {"reaping_host", test_reaping_host},
    {"close_kills", test_close_kills},
    {"cache", test_cache},
    {"filter", test_filter},
    {"offer", test_offer},
    {"prebuild", test_prebuild},
    {"quiet", test_quiet},
    {"getters", test_getters},
    {"null", test_null},
    {"tests_json", test_tests_json},
    {"tests_setters", test_tests_setters},
    {"tests_errors", test_tests_errors},
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
            puts(tests[i].name);
        return 0;
    }
    if (argc >= 4) {
        engine_options.languages_dir = argv[2];
        engine_options.warden_path = argv[3];
    }
    if (argc >= 5)
        optional_control = argv[4];
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].run();
            return 0;
        }
    fprintf(stderr, "no test '%s'\n", argv[1]);
    return 2;
}
