/* Owns the way from the words of `cordon test` to a Request in JSON. An option that `cordon run` has goes through that
 * command's own handler first, so that both refuse the same values in the same words. Called by cmd_test.c. */
#include "service/test_flags.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/input.h"
#include "output/utf8.h"
#include "plan/limits.h"
#include "service/test_cases.h"

typedef int add_option(json_t *request, const char *name, const char *value, cordon_error *err);

/* Text, or base64 where it is no UTF-8. */
static json_t *bytes_json(const struct buf *content)
{
    if (utf8_valid(buf_text(content), content->length))
        return json_stringn(buf_text(content), content->length);
    size_t length;
    auto_free char *encoded = base64_encode(buf_text(content), content->length, &length);
    return encoded ? json_pack("{s:s}", "base64", encoded) : NULL;
}

static int set(json_t *object, const char *name, json_t *value, cordon_error *err)
{
    if (!value)
        return error_nomem(err);
    return json_object_set_new(object, name, value) < 0
               ? error_set(err, CORDON_EINVAL, "usage", "the name of a file or variable is not UTF-8")
               : 0;
}

static json_t *part(json_t *request, const char *name, bool is_list)
{
    if (!json_object_get(request, name))
        json_object_set_new(request, name, is_list ? json_array() : json_object());
    return json_object_get(request, name);
}

/* The words of a command line need not be UTF-8, and JSON must be. */
static json_t *word_json(const char *word)
{
    return utf8_valid(word, strlen(word)) ? json_string(word) : NULL;
}

static int not_text(cordon_error *err)
{
    return error_set(err, CORDON_EINVAL, "usage", "it is not UTF-8");
}

static int add_text(json_t *request, const char *name, const char *value, cordon_error *err)
{
    json_t *word = word_json(value);
    return word ? set(request, name, word, err) : not_text(err);
}

static int add_limit(json_t *request, const char *name, const char *value, cordon_error *err)
{
    int code = limit_kind(limit_from_name(name)) == LIMIT_KIND_TIME ? option_check_time(value, err) : 0;
    return code < 0 ? code : set(part(request, "limits", false), name, json_string(value), err);
}

static int add_item(json_t *request, const char *name, const char *value, cordon_error *err)
{
    json_t *word = word_json(value);
    if (!word)
        return not_text(err);
    return json_array_append_new(part(request, name, true), word) < 0 ? error_nomem(err) : 0;
}

static int add_true(json_t *request, const char *name, const char *value, cordon_error *err)
{
    (void)value;
    return set(request, name, json_true(), err);
}

static int add_file(json_t *request, const char *name, const char *value, cordon_error *err)
{
    auto_buf struct buf content = {0};
    auto_free char *destination = NULL;
    const char *source = value;
    (void)name;
    if (strchr(value, '=')) {
        int code = input_split_pair(value, &destination, &source, err);
        if (code < 0)
            return code;
    }
    int code = input_read_file(source, &content, NULL, err);
    return code < 0 ? code
                    : set(part(request, "files", false), destination ? destination : input_base_name(source),
                          bytes_json(&content), err);
}

static int add_stdin(json_t *request, const char *name, const char *value, cordon_error *err)
{
    auto_buf struct buf content = {0};
    if (*value != '@')
        return add_text(request, name, value, err);
    int code = input_read_file(value + 1, &content, NULL, err);
    if (code < 0)
        return code;
    if (!utf8_valid(buf_text(&content), content.length)) {
        error_set(err, CORDON_EINVAL, "usage", "%s is not UTF-8", value + 1);
        return error_hint(err, "give it as the stdin of each case, in base64");
    }
    return set(request, name, json_stringn(buf_text(&content), content.length), err);
}

static int add_env(json_t *request, const char *name, const char *value, cordon_error *err)
{
    auto_free char *variable = NULL;
    const char *text;
    int code = input_split_pair(value, &variable, &text, err);
    if (code < 0)
        return code;
    json_t *word = word_json(text);
    if (!word)
        return not_text(err);
    return set(part(request, "env", false), variable,
               json_pack("{s:o, s:b}", "value", word, "secret", !strcmp(name, "secret")), err);
}

static int add_mount(json_t *request, const char *name, const char *value, cordon_error *err)
{
    struct input_mount mount;
    int code = input_split_mount(value, &mount, err);
    if (code < 0)
        return code;
    json_t *one = json_pack("{s:s, s:s, s:b}", "source", mount.source, "destination", mount.destination, "writable",
                            mount.writable);
    input_mount_free(&mount);
    return one && json_array_append_new(part(request, name, true), one) == 0 ? 0 : not_text(err);
}

/* true, false, all, or names of rules with commas between. */
static int add_sanitize(json_t *request, const char *name, const char *value, cordon_error *err)
{
    static const char *const words[] = {"false", "true"};
    for (int i = 0; i < 2; i++)
        if (!strcmp(words[i], value))
            return set(request, name, json_boolean(i), err);
    if (!strcmp(value, "all"))
        return add_text(request, name, value, err);
    auto_free char *list = strdup(value);
    char *rest = NULL;
    for (char *word = list ? strtok_r(list, ",", &rest) : NULL; word; word = strtok_r(NULL, ",", &rest)) {
        int code = add_item(request, name, word, err);
        if (code < 0)
            return code;
    }
    return list ? 0 : error_nomem(err);
}

/* Options of `cordon run` that `cordon test` has too: what they are in a Request. NULL: nothing. */
static const struct shared {
    const char *option;
    add_option *add;
    const char *name;
} shared[] = {
    {"language", add_text, "language"},
    {"code", add_text, "code"},
    {"file", add_file, NULL},
    {"stdin", add_stdin, "stdin"},
    {"env", add_env, "plain"},
    {"env-secret", add_env, "secret"},
    {"no-cache", NULL, NULL},
    {"profile", add_text, "profile"},
    {"wall", add_limit, "wall_ms"},
    {"cpu", add_limit, "cpu_ms"},
    {"cpus", add_limit, "cpus"},
    {"memory", add_limit, "memory_bytes"},
    {"processes", add_limit, "processes"},
    {"disk", add_limit, "disk_bytes"},
    {"inodes", add_limit, "inodes"},
    {"open-files", add_limit, "open_files"},
    {"file-size", add_limit, "file_bytes"},
    {"output", add_limit, "output_bytes"},
    {"on-output-limit", add_text, "on_output_limit"},
    {"isolation", add_text, "isolation"},
    {"network", add_text, "network"},
    {"environment", add_text, "environment"},
    {"mount", add_mount, "mounts"},
    {"pty", add_true, "pty"},
    {"optional", add_item, "optional"},
    {"json", NULL, NULL},
    {"quiet", NULL, NULL},
    {"sanitize", add_sanitize, "sanitize"},
};

static const struct option_row *row_of_run(const char *name)
{
    for (size_t i = 0; i < run_usage.row_count; i++)
        if (run_usage.rows[i].long_name && !strcmp(run_usage.rows[i].long_name, name))
            return &run_usage.rows[i];
    return NULL;
}

static const struct shared *shared_option(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(shared); i++)
        if (!strcmp(shared[i].option, name))
            return &shared[i];
    return NULL;
}

static int on_shared(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct test_flags *flags = context;
    const struct option_row *own = row_of_run(row->long_name);
    const struct shared *as = shared_option(row->long_name);
    int code = own->handle(&flags->run, own, value, err);
    return code < 0 || !as->add ? code : as->add(flags->request, as->name, value, err);
}

static int on_tests(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row, (void)err;
    ((struct test_flags *)context)->tests = value;
    return 0;
}

static int on_stop(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    if (strcmp(value, "never") != 0 && strcmp(value, "first_failure") != 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%s' is neither never nor first_failure", value);
    ((struct test_flags *)context)->stop = value;
    return 0;
}

int test_flags_number(const char *value, unsigned *number, cordon_error *err)
{
    char *end;
    unsigned long found = strtoul(value, &end, 10);
    if (*end || *value < '0' || *value > '9' || !found || found > 256)
        return error_set(err, CORDON_EINVAL, "usage", "'%s' is no number from 1 to 256", value);
    *number = (unsigned)found;
    return 0;
}

static int on_parallel(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    return test_flags_number(value, &((struct test_flags *)context)->parallel, err);
}

static const struct option_row own_rows[] = {
    {NULL, 0, NULL, "Tests", NULL, NULL},
    {"tests", 't', "FILE|DIR",
     "the cases: JSON of `tests` or a list of cases; or a directory\nof NAME.in with NAME.out or NAME.ans", on_tests,
     NULL},
    {"stop", 0, "WHEN", "never (the default) or first_failure", on_stop, NULL},
    {"parallel", 'p', "N", "cases at a time; 1 by default, which disturbs times least", on_parallel, NULL},
};

/* Its own options, then those of `cordon run` that it has, with their headings. */
static size_t fill_rows(struct option_row *rows)
{
    size_t count = ARRAY_LEN(own_rows);
    memcpy(rows, own_rows, sizeof own_rows);
    for (size_t i = 0; i < run_usage.row_count && count < OPTIONS_MAX; i++) {
        struct option_row row = run_usage.rows[i];
        if (row.long_name && !shared_option(row.long_name))
            continue;
        if (row.long_name)
            row.handle = on_shared;
        rows[count++] = row;
    }
    return count;
}

/* Where the program comes from: -c, FILE or '-'. What follows is its arguments. */
static int take_program(struct test_flags *flags, int argc, char **argv, int first, const char **file,
                        cordon_error *err)
{
    auto_buf struct buf content = {0};
    bool regular = false;
    *file = NULL;
    if (flags->run.code)
        return first;
    if (first >= argc) {
        error_set(err, CORDON_EINVAL, "usage", "there is no program to test");
        return error_hint(err, "name a file, or give -l LANGUAGE -c CODE");
    }
    bool from_stdin = !strcmp(argv[first], "-");
    int code = from_stdin ? input_read_stdin(&content, err) : input_read_file(argv[first], &content, &regular, err);
    if (code < 0)
        return code;
    *file = from_stdin ? NULL : argv[first];
    if (!regular && !utf8_valid(buf_text(&content), content.length))
        return error_set(err, CORDON_EINVAL, "usage", "the program read from %s is not UTF-8", argv[first]);
    if (!regular)
        code = set(flags->request, "code", json_stringn(buf_text(&content), content.length), err);
    else {
        const char *name = input_base_name(argv[first]);
        code = set(part(flags->request, "files", false), name, bytes_json(&content), err);
        if (code == 0)
            code = set(flags->request, "entry", json_string(name), err);
    }
    return code < 0 ? code : first + 1;
}

int test_flags_read(struct test_flags *flags, int argc, char **argv, const char **file, cordon_error *err)
{
    struct option_row rows[OPTIONS_MAX];
    struct usage usage = {
        .synopsis = "cordon test [OPTION...] --tests FILE PROGRAM [ARGUMENT...]\n"
                    "       cordon test [OPTION...] --tests FILE -l LANGUAGE -c CODE [-- ARGUMENT...]",
        .about = "Runs one program against many cases, each in a fresh cell, and compares what it prints\n"
                 "with what is expected; or runs its tests in the language's own framework.",
        .rows = rows,
        .closing = "The exit code is 0 when every test passed, 1 when not, 2 for bad usage, 125 for a failure\n"
                   "of Cordon, 130 when it was interrupted.\n"
                   "\n"
                   "  cordon test --tests cases.json solution.py\n"
                   "  cordon test --tests tests/ --stop first_failure --wall 1s solution.c",
    };
    int first = 0;
    usage.row_count = fill_rows(rows);
    int code = options_parse(&usage, argc, argv, flags, &first, err);
    if (code)
        return code;
    if (!flags->tests) {
        error_set(err, CORDON_EINVAL, "usage", "there are no tests");
        return error_hint(err, "name them with --tests FILE");
    }
    int next = take_program(flags, argc, argv, first, file, err);
    for (int i = next; next >= 0 && code == 0 && i < argc; i++)
        code = add_item(flags->request, "args", argv[i], err);
    if (next < 0 || code < 0)
        return next < 0 ? next : code;
    if (!*file && !flags->run.language) {
        error_set(err, CORDON_EINVAL, "usage", "the program needs a language");
        return error_hint(err, "name it with -l; 'cordon languages' lists them");
    }
    json_t *tests = NULL;
    code = test_cases_read(flags->tests, &tests, err);
    if (code == 0 && flags->stop)
        code = set(tests, "stop", json_string(flags->stop), err);
    return code < 0 ? code : set(flags->request, "tests", tests, err);
}

void test_flags_free(struct test_flags *flags)
{
    cordon_request_free(flags->run.request);
    json_decref(flags->request);
}
