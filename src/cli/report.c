/* Owns the wording of errors on the command line and their exit codes. Called by every command; decides nothing about
 * how a program ended: that is the result's. */
#include "cli/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/plain.h"
#include "cli/terminal.h"

/* By the negated code. */
static const struct failure {
    const char *name;
    const char *status;
    int exit_code;
    const char *before_step; /* NULL: the text says by itself what failed */
} failures[] = {
    [-CORDON_EINVAL] = {"invalid", "rejected", EXIT_USAGE, NULL},
    [-CORDON_EUNENFORCEABLE] = {"unenforceable", "internal_error", EXIT_OWN_FAILURE, NULL},
    [-CORDON_ESYSTEM] = {"system", "internal_error", EXIT_OWN_FAILURE, ""},
    [-CORDON_ENOMEM] = {"memory", "internal_error", EXIT_OWN_FAILURE, NULL},
    [-CORDON_EGONE] = {"gone", "internal_error", EXIT_OWN_FAILURE, ""},
    [-CORDON_ENOTFOUND] = {"not_found", "rejected", EXIT_USAGE, NULL},
    [-CORDON_ESTATE] = {"state", "internal_error", EXIT_OWN_FAILURE, ""},
};

static const struct failure *failure_of(const cordon_error *err)
{
    int index = err->code < 0 && (size_t)-err->code < ARRAY_LEN(failures) ? -err->code : -CORDON_ESTATE;
    return &failures[index];
}

/* "what failed: why (hint)" */
static void put_line(struct buf *line, const cordon_error *err)
{
    const char *before = failure_of(err)->before_step;
    if (before && *err->step)
        buf_printf(line, "%s%s: ", before, err->step);
    buf_puts(line, err->text);
    if (*err->hint)
        buf_printf(line, " (%s)", err->hint);
}

static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}

/* The fields that a reader of results looks at first, so that one code path reads both. */
static json_t *error_object(const cordon_error *err, const char *reason)
{
    const struct failure *failure = failure_of(err);
    return json_pack("{s:s, s:s, s:b, s:n, s:n, s:s, s:s, s:s, s:{s:s, s:s, s:o, s:o, s:o, s:o}}", "state", "done",
                     "status", failure->status, "success", 0, "exit_code", "signal", "stdout", "", "stderr", "",
                     "reason", reason, "error", "code", failure->name, "message", err->text, "step",
                     text_or_null(err->step), "errno", err->sys_errno ? json_integer(err->sys_errno) : json_null(),
                     "field", text_or_null(err->field), "hint", text_or_null(err->hint));
}

static void keep_ascii(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            *text = '?';
}

/* A file name in the text need not be UTF-8, and a cut text may end within a character: then only its ASCII is kept. */
static char *error_json(const cordon_error *err, const char *reason)
{
    auto_json json_t *object = error_object(err, reason);
    if (object)
        return json_dumps(object, JSON_COMPACT);
    cordon_error plain = *err;
    keep_ascii(plain.text);
    keep_ascii(plain.field);
    keep_ascii(plain.hint);
    auto_json json_t *fallback = error_object(&plain, plain.text);
    return fallback ? json_dumps(fallback, JSON_COMPACT) : NULL;
}

json_t *report_object(const cordon_error *err)
{
    auto_buf struct buf line = {0};
    put_line(&line, err);
    auto_free char *text = error_json(err, buf_text(&line));
    return text ? json_loads(text, 0, NULL) : NULL;
}

int report_error(const cordon_error *err, bool json)
{
    auto_buf struct buf line = {0};
    put_line(&line, err);
    auto_free char *text = json ? error_json(err, buf_text(&line)) : NULL;
    if (text)
        report_json_text(text);
    else
        terminal_say("%s", buf_text(&line));
    return failure_of(err)->exit_code;
}

int report_usage(const cordon_error *err, const char *command)
{
    int exit_code = report_error(err, false);
    if (err->code == CORDON_EINVAL && !*err->hint)
        terminal_say("try 'cordon %s --help'", command);
    return exit_code;
}

json_t *report_parse(const char *text)
{
    json_error_t problem;
    json_t *value = json_loads(text, JSON_ALLOW_NUL, &problem);
    if (!value)
        terminal_say("reading the library's answer: %s", problem.text);
    return value;
}

int report_json_text(const char *text)
{
    auto_buf struct buf line = {0};
    if (isatty(STDOUT_FILENO))
        plain_put_json(&line, text, strlen(text));
    else
        buf_puts(&line, text);
    buf_puts(&line, "\n");
    if (line.failed) {
        terminal_say("out of memory");
        return EXIT_OWN_FAILURE;
    }
    int code = terminal_write(STDOUT_FILENO, line.data, line.length, NULL);
    if (code == -EPIPE)
        return EXIT_PIPE_CLOSED;
    if (code < 0) {
        terminal_say("writing standard output: %s", strerror(-code));
        return EXIT_OWN_FAILURE;
    }
    return 0;
}

const char *member_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}
