/* The filter of a run: everything it prints passes through it once, in order, and ends; and what counts on one is
 * refused without. */
#include <string.h>

#include "api.h"

struct seen {
    size_t bytes[3];
    unsigned ends[3], texts;
};

/* Digits become stars. */
static void star(cordon_emit emit, void *sink, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        emit(sink, bytes[i] >= '0' && bytes[i] <= '9' ? "*" : &bytes[i], 1);
}

static void filter_output(void *context, int stream, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    struct seen *seen = context;
    seen->bytes[stream] += length;
    seen->ends[stream] += !length;
    star(emit, sink, bytes, length);
}

static void filter_text(void *context, const char *what, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    struct seen *seen = context;
    CHECK(!strcmp(what, "file"), "%s", what);
    seen->texts++;
    star(emit, sink, bytes, length);
}

static void hear(void *context, int stream, const void *bytes, size_t length)
{
    char *heard = context;
    if (stream == 1)
        strncat(heard, bytes, length);
}

static void check_filtered(cordon_engine *engine)
{
    struct seen seen = {0};
    char heard[64] = "";
    cordon_filter filter = {&seen, filter_output, filter_text};
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    options.filter = &filter;
    options.on_output = hear;
    options.context = heard;
    options.id = "0123456789abcdef0123456789abcdef";
    cordon_request *request = new_request("bash", "echo a1b22; echo 3 >&2; echo 4c > file");
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(!cordon_request_add_collect(request, "file", &err), "%s", err.text);
    CHECK(!cordon_request_add_env(request, "S", "value", true, &err), "%s", err.text);
    CHECK(!cordon_execute(engine, request, &options, &result, &err), "%s", err.text);
    CHECK(!strcmp(cordon_result_stdout(result, NULL), "a*b**\n"), "%s", cordon_result_stdout(result, NULL));
    CHECK(!strcmp(cordon_result_stderr(result, NULL), "*\n"), "%s", cordon_result_stderr(result, NULL));
    CHECK(!strcmp(heard, "a*b**\n"), "%s", heard);
    CHECK(seen.bytes[1] == 6 && seen.bytes[2] == 2 && seen.ends[1] == 1 && seen.ends[2] == 1 &&
              seen.texts == 2, /* the file and its name */
          "%zu %zu %u %u %u", seen.bytes[1], seen.bytes[2], seen.ends[1], seen.ends[2], seen.texts);
    CHECK(!cordon_result_add_redaction(result, "digit", "stdout", 3), "memory");
    const char *json = cordon_result_json(result);
    CHECK(strstr(json, "\"redactions\":[{\"rule\":\"digit\",\"stream\":\"stdout\",\"count\":3}]"), "%s", json);
    CHECK(strstr(json, "\"*c\\n\"") && strstr(json, "\"id\":\"0123456789abcdef0123456789abcdef\""), "%s", json);
    cordon_result_free(result);
    cordon_request_free(request);
}

static void check_refused(cordon_engine *engine, cordon_request *request, const char *field)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(cordon_execute(engine, request, NULL, &result, &err) == CORDON_EINVAL && !result, "it ran");
    CHECK(!strcmp(err.field, field) && *err.hint, "%s %s %s", err.field, err.text, err.hint);
    cordon_request_free(request);
}

void test_filter(void)
{
    cordon_engine *engine = open_engine();
    cordon_error err = {0};
    check_filtered(engine);
    cordon_request *request = new_request("bash", "echo $S");
    CHECK(!cordon_request_add_env(request, "S", "value", true, &err), "%s", err.text);
    check_refused(engine, request, "/env/S");
    request = new_request("bash", "echo");
    CHECK(!cordon_request_add_sanitize(request, "all", &err), "%s", err.text);
    check_refused(engine, request, "/sanitize");
    cordon_engine_close(engine);
}
