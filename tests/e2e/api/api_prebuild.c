/* What is made once for a compiler: seen by every compile step, written by none, and not used when it was changed. */
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A language whose compiler copies what was prebuilt, and tries to change it. */
static const char manifest[] =
    "id: stamp\n"
    "name: Stamp\n"
    "extensions: [stamp]\n"
    "file: main.stamp\n"
    "version: [sh, -c, 'echo 1.0']\n"
    "compile:\n"
    "  argv: [sh, -c, 'cat /tmp/made/a/stamp >out || echo nothing >out; echo x >/tmp/made/a/stamp; "
    "echo x >/tmp/made/new; cat /tmp/made/a/stamp >>out; ls /tmp/made >>out; true']\n"
    "  outputs: [out]\n"
    "prebuild:\n"
    "  source: stamp.sh\n"
    "  argv: [sh, main.stamp]\n"
    "  from: made\n"
    "  at: /tmp/made\n"
    "run:\n"
    "  argv: [cat, out]\n";

static void put(const char *directory, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

/* With $PLACE for the test's own directory. */
static void shell(const char *command)
{
    CHECK(system(command) == 0, "%s", command);
}

static int prebuild(cordon_engine *engine, const char *language, int only_look, cordon_error *err)
{
    memset(err, 0, sizeof *err);
    return cordon_engine_prebuild(engine, language, only_look, NULL, NULL, err);
}

static int give_up(void *context)
{
    (void)context;
    return 0;
}

static void expect_output(cordon_engine *engine, const char *code, const char *expected)
{
    cordon_request *request = new_request("stamp", code);
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(cordon_execute(engine, request, NULL, &result, &err) == 0, "%s: %s", err.step, err.text);
    CHECK(!strcmp(cordon_result_stdout(result, NULL), expected), "%s", cordon_result_json(result));
    cordon_result_free(result);
    cordon_request_free(request);
}

/* An engine reads a manifest, and what lies beside it, once. */
static void change_source(cordon_engine **engine, const char *languages, const char *source)
{
    cordon_engine_close(*engine);
    put(languages, "warm/stamp.sh", source);
    *engine = open_engine();
}

void test_prebuild(void)
{
    char directory[] = "/tmp/cordon-api-XXXXXX", cache[64], languages[64];
    cordon_error err;
    umask(077); /* cells see it as others would */
    CHECK(mkdtemp(directory), "no directory");
    snprintf(cache, sizeof cache, "%s/cache", directory);
    snprintf(languages, sizeof languages, "%s/languages", directory);
    setenv("PLACE", directory, 1);
    shell("mkdir -p $PLACE/languages/warm");
    put(languages, "stamp.yaml", manifest);
    put(languages, "warm/stamp.sh", "mkdir -p made/a && echo prebuilt >made/a/stamp\n");
    put(languages, "plain.yaml",
        "id: plain\nname: Plain\nextensions: [plain]\nfile: main.plain\nversion: [sh]\nrun: {argv: [sh, "
        "main.plain]}\n");
    put(languages, "broken.yaml",
        "id: broken\nname: Broken\nextensions: [broken]\nfile: main.broken\nversion: [sh]\ncompile: {argv: [sh]}\n"
        "run: {argv: [sh]}\nprebuild: {source: no.sh, argv: [sh, -c, 'echo why >&2; exit 3'], from: made, at: "
        "/tmp/made}\n");
    put(languages, "warm/no.sh", "true\n");
    engine_options.languages_dir = languages;
    engine_options.cache_dir = cache;
    cordon_engine *engine = open_engine();

    CHECK(prebuild(engine, "plain", 0, &err) == 0, "nothing to be made: %s", err.text);
    CHECK(prebuild(engine, "nobody", 0, &err) == CORDON_ENOTFOUND, "%s", err.text);
    CHECK(prebuild(engine, "broken", 1, &err) == 1, "to be made: %s", err.text);
    CHECK(prebuild(engine, "broken", 0, &err) < 0 && strstr(err.text, "nonzero_exit") && strstr(err.hint, "why"),
          "%s | %s", err.text, err.hint);
    CHECK(prebuild(engine, "broken", 1, &err) == 0, "not again so soon: %s", err.text);
    CHECK(prebuild(engine, "broken", 0, &err) < 0 && strstr(err.text, "a short while ago"), "%s", err.text);
    expect_output(engine, "before", "nothing\n");

    CHECK(prebuild(engine, "stamp", 1, &err) == 1, "missing: %s", err.text);
    CHECK(prebuild(engine, "stamp", 0, &err) == 1, "made: %s", err.text);
    CHECK(prebuild(engine, "stamp", 1, &err) == 0 && prebuild(engine, "stamp", 0, &err) == 0, "there: %s", err.text);
    expect_output(engine, "one", "prebuilt\nprebuilt\na\n");
    expect_output(engine, "two", "prebuilt\nprebuilt\na\n");

    shell("for file in $PLACE/cache/prebuilt/*/tree/a/stamp; do chmod u+w $file; echo more >>$file; done");
    CHECK(prebuild(engine, "stamp", 1, &err) == 1, "changed: %s", err.text);
    expect_output(engine, "three", "nothing\n");
    CHECK(prebuild(engine, "stamp", 0, &err) == 1, "made again: %s", err.text);
    expect_output(engine, "four", "prebuilt\nprebuilt\na\n");

    change_source(&engine, languages, "mkdir -p made/a && echo other >made/a/stamp\n");
    CHECK(prebuild(engine, "stamp", 0, &err) == 1, "of another source: %s", err.text);
    expect_output(engine, "five", "other\nother\na\n");

    shell("for index in $PLACE/cache/prebuilt/*/index; do chmod u+w $index; printf 'x\\0y\\n' >$index; done");
    CHECK(prebuild(engine, "stamp", 1, &err) == 1, "a broken index: %s", err.text);
    expect_output(engine, "six", "nothing\n");

    /* As deep as a result may be, and more of them than are kept. */
    for (int i = 0; i < 6; i++) {
        char source[200];
        snprintf(
            source, sizeof source,
            "d=made; for n in $(seq 28); do d=$d/$n; done; mkdir -p $d made/a; echo %d >made/a/stamp; echo >$d/end\n",
            i);
        change_source(&engine, languages, source);
        CHECK(prebuild(engine, "stamp", 0, &err) == 1, "number %d: %s", i, err.text);
    }
    shell("test $(ls $PLACE/cache/prebuilt | wc -l) -le 4");

    change_source(&engine, languages, "sleep 20; mkdir made; echo >made/late\n");
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CHECK(cordon_engine_prebuild(engine, "stamp", 0, give_up, NULL, &err) < 0, "given up");
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(end.tv_sec - begin.tv_sec < 10, "%ld s until it was given up", (long)(end.tv_sec - begin.tv_sec));
    CHECK(prebuild(engine, "stamp", 1, &err) == 1, "that was no failure: %s", err.text);

    shell("test -z \"$(find $PLACE/cache/prebuilt -name '.new-*' -o -name '.note-*' ! -size 1c)\"");
    shell("test -z \"$(find $PLACE/cache/prebuilt/*/tree -type f ! -perm 444 -o -type d ! -perm 755)\"");
    cordon_engine_close(engine);
    shell("rm -r $PLACE");
}
