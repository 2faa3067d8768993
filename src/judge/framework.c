/* Owns the table of test frameworks and the request that runs one. A runner in the framework's language
 * (languages/tests) is the entry; it writes a report that is collected from the work directory. The program under test
 * runs in the same cell as its tests, so what a framework says is the program's word: a program that means to can forge
 * it. Called by judge.c. */
#include "judge/framework.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/result.h"
#include "engine/run.h"
#include "output/glob.h"
#include "plan/request.h"
#include "plan/word.h"

#define FOLDER       ".cordon-tests"
#define REPORT       FOLDER "/report"
#define WATCH_MS     20
#define PATTERNS_MAX 4

struct framework {
    const char *name;
    const char *language;              /* of the program under test */
    const char *runs_in;               /* of the runner */
    const char *runner;                /* file beneath tests/ beside the manifests */
    const char *tests[PATTERNS_MAX];   /* names of files that hold tests */
    const char *sources[PATTERNS_MAX]; /* taken when none has such a name */
    const char *package;               /* what to install where it is missing */
    enum report_format format;
    bool compiles; /* needs what a compiler needs */
};

static const struct framework frameworks[] = {
    {"pytest",
     "python",
     "python",
     "pytest.py",
     {"**/test_*.py", "**/*_test.py"},
     {"**/*.py"},
     "python3-pytest",
     REPORT_LINES,
     false},
    {"unittest",
     "python",
     "python",
     "unittest.py",
     {"**/test*.py", "**/*_test.py"},
     {"**/*.py"},
     "python3",
     REPORT_LINES,
     false},
    {"node",
     "javascript",
     "javascript",
     "node.js",
     {"**/*[.-_]test.[cm]js", "**/*[.-_]test.js", "**/test[.-]*"},
     {"**/*.js", "**/*.[cm]js"},
     "nodejs (20 or newer)",
     REPORT_LINES,
     false},
    {"minitest",
     "ruby",
     "ruby",
     "minitest.rb",
     {"**/test_*.rb", "**/*_test.rb"},
     {"**/*.rb"},
     "ruby-minitest",
     REPORT_LINES,
     false},
    {"go", "go", "bash", "go.sh", {NULL}, {NULL}, "golang-go", REPORT_GO, true},
    {"bats", "bash", "bash", "bats.sh", {"**/*.bats"}, {"**/*"}, "bats", REPORT_TAP, false},
};

static const struct framework *find_name(const char *name, cordon_error *err)
{
    const char *names[ARRAY_LEN(frameworks)];
    for (size_t i = 0; i < ARRAY_LEN(frameworks); i++) {
        names[i] = frameworks[i].name;
        if (!strcmp(names[i], name))
            return &frameworks[i];
    }
    word_unknown(err, "/tests/framework", "framework", name, names, ARRAY_LEN(names));
    return NULL;
}

int framework_find(cordon_engine *engine, const json_t *request, const struct spec *spec,
                   const struct framework **framework, cordon_error *err)
{
    const char *language = json_string_value(json_object_get(request, "language"));
    const struct manifest *manifest;
    *framework = find_name(spec->framework, err);
    if (!*framework)
        return CORDON_EINVAL;
    if (!language)
        return error_field(err, "/language", "language is missing; expected %s, as %s tests it", (*framework)->language,
                           (*framework)->name);
    if (!engine)
        return 0;
    int code = catalog_find(engine->catalog, language, &manifest, err);
    if (code < 0)
        return code;
    if (strcmp(manifest->id, (*framework)->language) != 0)
        return error_field(err, "/tests/framework", "%s tests programs in %s; the language is %s", (*framework)->name,
                           (*framework)->language, manifest->id);
    return 0;
}

static bool matches(const char *const *patterns, const char *path)
{
    for (size_t i = 0; i < PATTERNS_MAX && patterns[i]; i++)
        if (glob_match(patterns[i], path).path)
            return true;
    return false;
}

/* The runner's arguments: the report, and the files that hold tests. */
static json_t *runner_args(const struct framework *framework, const json_t *files)
{
    json_t *args = json_pack("[s]", REPORT), *content;
    const char *path;
    const char *const *const choices[] = {framework->tests, framework->sources};
    for (size_t i = 0; args && i < ARRAY_LEN(choices) && json_array_size(args) == 1; i++)
        json_object_foreach((json_t *)files, path, content)
        {
            auto_free char *name = matches(choices[i], path) ? command_file(path) : NULL;
            if (name)
                json_array_append_new(args, json_string(name));
        }
    return args;
}

/* Files come as an object by path, or as an array of the form that results have. The number in the array; its size for
 * none. */
static size_t find_file(const json_t *files, const char *path)
{
    size_t i = 0;
    while (i < json_array_size(files)) {
        const json_t *item = json_array_get(files, i);
        const char *name = json_string_value(json_object_get(item, "path"));
        if (name && !strcmp(name, path) && !json_object_get(item, "path_base64"))
            break;
        i++;
    }
    return i;
}

static bool has_file(const json_t *files, const char *path)
{
    return json_is_array(files) ? find_file(files, path) < json_array_size(files)
                                : json_object_get(files, path) != NULL;
}

/* `content` is a string or {"base64": …}. */
static void set_file(json_t *files, const char *path, json_t *content)
{
    if (!json_is_array(files)) {
        json_object_set(files, path, content);
        return;
    }
    const json_t *encoded = json_object_get(content, "base64");
    json_array_remove(files, find_file(files, path));
    json_array_append_new(files, json_pack("{s:s, s:O}", "path", path, encoded ? "content_base64" : "content",
                                           encoded ? encoded : content));
}

/* The program's own files and those of the tests; `code` gets the name that it would have in a plain run. */
static json_t *all_files(const struct manifest *manifest, const json_t *request, const json_t *tests, cordon_error *err)
{
    const json_t *given = json_object_get(request, "files"), *code = json_object_get(request, "code");
    json_t *files = given ? json_copy((json_t *)given) : json_object(), *content;
    const char *path;
    if (files && code && manifest)
        set_file(files, manifest->file, (json_t *)code);
    json_object_foreach((json_t *)tests, path, content)
    {
        if (!has_file(files, path)) {
            set_file(files, path, content);
            continue;
        }
        error_field(err, word_pointer("/tests/files", path).text, "the program has a file of this name too");
        json_decref(files);
        return NULL;
    }
    if (!files)
        error_nomem(err);
    return files;
}

static const json_t *limit_given(const json_t *request, const char *name)
{
    return json_object_get(json_object_get(request, "limits"), name);
}

/* A compiler's limits where the request sets none: those of a program would not do. */
static void give_compile_limits(json_t *whole, const json_t *request)
{
    struct limits limits = {0};
    json_t *into = json_copy(json_object_get(request, "limits"));
    if (!into)
        into = json_object();
    limits_for_compile(&limits);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (!limit_given(request, limit_name(i)) && limits.value[i] > 0 && limits.value[i] != LIMIT_UNLIMITED)
            json_object_set_new(into, limit_name(i),
                                i == LIMIT_CPUS ? json_real((double)limits.value[i] / 1000)
                                                : json_integer(limits.value[i]));
    json_object_set_new(whole, "limits", into);
}

static int read_runner(const struct framework *framework, const struct manifest *manifest, struct buf *text,
                       cordon_error *err)
{
    const char *found;
    size_t length;
    const struct manifest_place place = {
        .folder = "tests", .name = framework->runner, .otherwise = CORDON_DATADIR "/languages"};
    if (manifest_text(manifest, &place, &found, &length, err) < 0)
        return error_hint(err, "it runs %s: reinstall Cordon", framework->name);
    buf_append(text, found, length);
    return text->failed ? error_nomem(err) : 0;
}

int frameworks_read_ahead(const cordon_engine *engine, cordon_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(frameworks); i++) {
        const struct manifest *manifest;
        auto_buf struct buf text = {0};
        /* Where the manifests are an operator's own, a framework's language may be none of them. */
        if (catalog_find(engine->catalog, frameworks[i].runs_in, &manifest, NULL) < 0)
            continue;
        int code = read_runner(&frameworks[i], manifest, &text, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* The request of the one run. `manifest` and `runner` are NULL when it is only checked. */
static json_t *make_request(const struct framework *framework, const struct manifest *manifest, const json_t *request,
                            const struct spec *spec, const struct buf *runner, cordon_error *err)
{
    static const char *const replaced[] = {"tests", "sanitize", "code", "entry"};
    json_t *files = all_files(manifest, request, spec->files, err);
    if (!files)
        return NULL;
    auto_buf struct buf entry = {0};
    /* Not by its own name: a module called pytest would be found before pytest. */
    buf_printf(&entry, FOLDER "/runner%s", strrchr(framework->runner, '.'));
    json_t *program = runner ? json_stringn(buf_text(runner), runner->length) : json_string("runner");
    set_file(files, buf_text(&entry), program);
    json_decref(program);
    json_t *whole = json_copy((json_t *)request);
    for (size_t i = 0; whole && i < ARRAY_LEN(replaced); i++)
        json_object_del(whole, replaced[i]);
    json_t *collect = json_deep_copy(json_object_get(request, "collect"));
    if (!collect)
        collect = json_array();
    if (json_is_array(collect))
        json_array_append_new(collect, json_string(REPORT));
    json_object_set_new(whole, "language", json_string(framework->runs_in));
    json_object_set_new(whole, "files", files);
    json_object_set_new(whole, "entry", json_string(buf_text(&entry)));
    json_object_set_new(whole, "args", runner_args(framework, spec->files));
    json_object_set_new(whole, "collect", collect);
    if (framework->compiles)
        give_compile_limits(whole, request);
    if (!whole)
        error_nomem(err);
    return whole;
}

static int parse_request(json_t *whole, cordon_request **request, cordon_error *err)
{
    auto_free char *text = json_dumps(whole, JSON_COMPACT);
    int code = text ? cordon_request_from_json(text, strlen(text), request, err) : error_nomem(err);
    return code;
}

/* The limits of a compiler are Cordon's choice where the request sets none, so they are lowered rather than refused. */
static int count_needs(cordon_request *request, const struct judge_options *options, struct judge_needs *needs,
                       cordon_error *err)
{
    if (options && options->bound)
        options->bound(options->policy, request);
    struct limits limits = request->limits;
    int code = limits_complete(&limits, request->profile, err);
    *needs = (struct judge_needs){.memory_bytes = limits.value[LIMIT_MEMORY_BYTES],
                                  .processes = limits.value[LIMIT_PROCESSES],
                                  .output_bytes = limits.value[LIMIT_OUTPUT_BYTES]};
    return code;
}

int framework_check(const struct framework *framework, const json_t *request, const struct spec *spec,
                    const struct judge_options *options, struct judge_needs *needs, cordon_error *err)
{
    cordon_request *parsed = NULL;
    if (json_object_get(request, "args"))
        return error_field(err, "/args", "a framework is called in its own way; expected no args");
    json_t *whole = make_request(framework, NULL, request, spec, NULL, err);
    int code = whole ? parse_request(whole, &parsed, err) : err ? err->code : CORDON_EINVAL;
    if (code == 0)
        code = request_check(parsed, err);
    if (code == 0 && needs)
        code = count_needs(parsed, options, needs, err);
    cordon_request_free(parsed);
    json_decref(whole);
    return code;
}

static int wait_for(cordon_run *run, const struct judge_options *options, cordon_result **result, cordon_error *err)
{
    int code;
    bool is_cancelled = false, can_stop = judge_can_stop(options);
    while ((code = cordon_run_dispatch(run, err)) == 0) {
        struct pollfd ready = {.fd = cordon_run_fd(run), .events = POLLIN};
        poll(&ready, 1, can_stop && !is_cancelled ? WATCH_MS : -1);
        if (can_stop && !is_cancelled && judge_is_stopped(options)) {
            is_cancelled = true;
            cordon_run_cancel(run);
        }
    }
    return code < 0 ? code : cordon_run_wait(run, result, err);
}

/* The report is Cordon's affair and none of the files that were asked for. */
static int take_report(cordon_result *result, enum report_format format, struct report *report)
{
    struct slice text = {"", 0};
    size_t at = 0;
    while (at < result->file_count && strcmp(result->files[at].path, REPORT) != 0)
        at++;
    if (at < result->file_count)
        text = (struct slice){result->files[at].content, result->files[at].size};
    int code = report_read(format, text, report);
    if (at < result->file_count) {
        free(result->files[at].path);
        free(result->files[at].shown);
        free(result->files[at].content);
        memmove(&result->files[at], &result->files[at + 1], (--result->file_count - at) * sizeof *result->files);
    }
    return code;
}

static int run_request(cordon_engine *engine, json_t *whole, const struct judge_options *options,
                       cordon_result **result, cordon_error *err)
{
    cordon_request *request = NULL;
    cordon_run *run = NULL;
    int code = parse_request(whole, &request, err);
    if (code == 0 && options && options->bound)
        options->bound(options->policy, request);
    if (code == 0)
        code = cordon_run_start(engine, request, NULL, &run, err);
    if (code == 0)
        code = wait_for(run, options, result, err);
    if (run && options && options->account)
        account_add(options->account, run_account(run));
    cordon_run_free(run);
    cordon_request_free(request);
    return code;
}

/* Runs the framework on the files of `request` and reads its report. */
static int run_reported(cordon_engine *engine, const struct framework *framework, const json_t *request,
                        const struct spec *spec, const struct judge_options *options, cordon_result **result,
                        struct report *report, cordon_error *err)
{
    const struct manifest *manifest, *runs_in;
    auto_buf struct buf runner = {0};
    int code = catalog_find(engine->catalog, framework->language, &manifest, err);
    if (code == 0)
        code = catalog_find(engine->catalog, framework->runs_in, &runs_in, err);
    if (code == 0)
        code = read_runner(framework, runs_in, &runner, err);
    if (code < 0)
        return code;
    json_t *whole = make_request(framework, manifest, request, spec, &runner, err);
    code = whole ? run_request(engine, whole, options, result, err) : err ? err->code : CORDON_EINVAL;
    json_decref(whole);
    if (code < 0)
        return code;
    (*result)->manifest = manifest; /* the program's language, and not the runner's */
    if (take_report(*result, framework->format, report) == 0)
        return 0;
    cordon_result_free(*result);
    *result = NULL;
    return error_nomem(err);
}

/* A report that says "missing" may be the tested program's own, so the runner is asked once more, in a cell without any
 * of the caller's files, under the same tolerance for missing controls. The cell is Cordon's and not charged to the
 * caller. Sets *missing. */
static int ask_runner(cordon_engine *engine, const struct framework *framework, const json_t *asked,
                      const struct judge_options *options, bool *missing, cordon_error *err)
{
    struct judge_options own = options ? *options : (struct judge_options){0};
    own.account = NULL;
    json_t *request = json_pack("{s:s, s:{}}", "language", framework->language, "files");
    if (json_object_get(asked, "optional"))
        json_object_set(request, "optional", json_object_get(asked, "optional"));
    struct spec spec = {.framework = framework->name, .files = json_object()};
    struct report report = {0};
    cordon_result *result = NULL;
    int code = request && spec.files ? run_reported(engine, framework, request, &spec, &own, &result, &report, err)
                                     : error_nomem(err);
    *missing = report.missing;
    report_free(&report);
    cordon_result_free(result);
    json_decref((json_t *)spec.files);
    json_decref(request);
    return code;
}

int framework_run(cordon_engine *engine, const struct framework *framework, const json_t *request,
                  const struct spec *spec, const struct judge_options *options, cordon_result **result,
                  struct report *report, cordon_error *err)
{
    int code = run_reported(engine, framework, request, spec, options, result, report, err);
    if (code < 0 || !report->missing)
        return code;
    bool missing = false;
    code = ask_runner(engine, framework, request, options, &missing, err);
    if (code == 0 && missing) {
        error_set(err, CORDON_ENOTFOUND, "tests", "%s cannot run here: it is not installed", framework->name);
        code = error_hint(err, "install %s on the host", framework->package);
    }
    if (code < 0) {
        report_free(report);
        cordon_result_free(*result);
        *result = NULL;
    }
    return code;
}
