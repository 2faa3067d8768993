/* The judge without a command around it, for tests/e2e/test_judge.py: reads one Request from standard input and prints
 * the Result, or the error. What no command offers can be asked for: a filter that replaces a word, an end after some
 * milliseconds, a check without a run. */
#include <jansson.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "judge/judge.h"

static const char *word;
static struct buf held[3];

static void put(struct buf *text, cordon_emit emit, void *sink)
{
    const char *at = buf_text(text), *found;
    while ((found = strstr(at, word))) {
        emit(sink, at, (size_t)(found - at));
        emit(sink, "[hidden]", 8);
        at = found + strlen(word);
    }
    emit(sink, at, strlen(at));
    text->length = 0;
}

/* Holds a stream back until its end, as a filter may. */
static void filter_output(void *context, int stream, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    (void)context;
    buf_append(&held[stream], bytes, length);
    if (!length)
        put(&held[stream], emit, sink);
}

static void filter_text(void *context, const char *what, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    (void)context, (void)what;
    buf_append(&held[0], bytes, length);
    put(&held[0], emit, sink);
}

static atomic_bool cancel;

static void *cancel_later(void *context)
{
    long ms = *(const long *)context;
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    atomic_store(&cancel, true);
    return NULL;
}

static void on_case(void *context, size_t index, size_t total, const json_t *one)
{
    fprintf(stderr, "case %zu of %zu: %s\n", index, total, json_string_value(json_object_get(one, "status")));
    (void)context;
}

static int fail(const cordon_error *err)
{
    printf("{\"error\": {\"code\": %d, \"field\": \"%s\", \"message\": \"%s\"}}\n", err->code, err->field, err->text);
    return 1;
}

int main(int argc, char **argv)
{
    cordon_filter filter = {NULL, filter_output, filter_text};
    struct judge_options options = {.on_case = on_case, .cancel = &cancel};
    cordon_engine_options engine_options = CORDON_ENGINE_OPTIONS_INIT;
    cordon_engine *engine = NULL;
    cordon_error err = {0};
    bool only_check = false;
    long cancel_ms = -1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--check"))
            only_check = true;
        else if (!strcmp(argv[i], "--no-cache"))
            engine_options.cache_bytes = SIZE_MAX;
        else if (!strcmp(argv[i], "--warden") && ++i < argc)
            engine_options.warden_path = argv[i];
        else if (!strcmp(argv[i], "--languages") && ++i < argc)
            engine_options.languages_dir = argv[i];
        else if (!strcmp(argv[i], "--filter") && ++i < argc) {
            word = argv[i];
            options.filter = &filter;
        } else if (!strcmp(argv[i], "--parallel") && ++i < argc)
            options.parallel = (unsigned)atoi(argv[i]);
        else if (!strcmp(argv[i], "--cancel") && ++i < argc)
            cancel_ms = atol(argv[i]);
    }
    json_t *request = json_loadf(stdin, JSON_ALLOW_NUL, NULL), *result = NULL;
    if (only_check) {
        int checked = judge_check(request, NULL, NULL, &err);
        json_decref(request);
        return checked < 0 ? fail(&err) : 0;
    }
    if (cordon_engine_open(&engine_options, &engine, &err) < 0)
        return fail(&err);
    pthread_t thread;
    if (cancel_ms >= 0 && pthread_create(&thread, NULL, cancel_later, &cancel_ms) != 0)
        return 2;
    int code = judge_run(engine, request, &options, &result, &err);
    if (cancel_ms >= 0)
        pthread_join(thread, NULL);
    cordon_engine_close(engine);
    for (int i = 0; i < 3; i++)
        buf_free(&held[i]);
    json_decref(request);
    if (code < 0)
        return fail(&err);
    json_dumpf(result, stdout, JSON_COMPACT);
    json_decref(result);
    return 0;
}
