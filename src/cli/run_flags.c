/* Owns the option table of `cordon run`: each handler puts one option into the request with the library's own setter,
 * so that the library alone judges values. Called through options_parse(). */
#include "cli/run_flags.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/input.h"

static int on_language(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    (void)row;
    flags->language = value;
    return cordon_request_set_language(flags->request, value, err);
}

static int on_code(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    (void)row;
    if (!*value)
        return error_set(err, CORDON_EINVAL, "usage", "the code is empty");
    flags->code = value;
    return cordon_request_set_code(flags->request, value, strlen(value), err);
}

static int on_file(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    auto_buf struct buf content = {0};
    auto_free char *destination = NULL;
    const char *source = value;
    (void)row;
    if (strchr(value, '=')) {
        int code = input_split_pair(value, &destination, &source, err);
        if (code < 0)
            return error_hint(err, "expected SRC or DST=SRC");
    }
    int code = input_read_file(source, &content, NULL, err);
    if (code < 0)
        return code;
    return cordon_request_add_file(flags->request, destination ? destination : input_base_name(source),
                                   buf_text(&content), content.length, err);
}

static int on_stdin(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    auto_buf struct buf content = {0};
    (void)row;
    flags->has_stdin = true;
    if (*value != '@')
        return cordon_request_set_stdin(flags->request, value, strlen(value), err);
    int code = input_read_file(value + 1, &content, NULL, err);
    return code < 0 ? code : cordon_request_set_stdin(flags->request, buf_text(&content), content.length, err);
}

static int add_env(struct run_flags *flags, const char *pair, bool secret, cordon_error *err)
{
    auto_free char *name = NULL;
    const char *value;
    int code = input_split_pair(pair, &name, &value, err);
    return code < 0 ? code : cordon_request_add_env(flags->request, name, value, secret, err);
}

static int on_env(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    return add_env(context, value, false, err);
}

static int on_env_secret(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    return add_env(context, value, true, err);
}

/* Options that are one text of the request. */
static const struct text_setter {
    const char *key;
    int (*set)(cordon_request *request, const char *text, cordon_error *err);
} text_setters[] = {
    {"profile", cordon_request_set_profile},   {"isolation", cordon_request_set_isolation},
    {"network", cordon_request_set_network},   {"environment", cordon_request_set_environment},
    {"optional", cordon_request_add_optional}, {"on_output_limit", cordon_request_set_on_output_limit},
};

static int on_text(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(text_setters); i++)
        if (!strcmp(text_setters[i].key, row->key))
            return text_setters[i].set(((struct run_flags *)context)->request, value, err);
    return error_set(err, CORDON_ESTATE, "options", "no setter for %s", row->key);
}

static bool limit_is_time(const char *key)
{
    size_t length = strlen(key);
    return length > 3 && !strcmp(key + length - 3, "_ms");
}

static int on_limit(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    int code = limit_is_time(row->key) ? option_check_time(value, err) : 0;
    return code < 0 ? code : cordon_request_set_limit(((struct run_flags *)context)->request, row->key, value, err);
}

static int on_mount(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    struct input_mount mount;
    (void)row;
    int code = input_split_mount(value, &mount, err);
    if (code < 0)
        return code;
    code = cordon_request_add_mount(flags->request, mount.source, mount.destination, mount.writable, err);
    input_mount_free(&mount);
    return code;
}

static int on_collect(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    (void)row;
    flags->has_collect = true;
    return cordon_request_add_collect(flags->request, value, err);
}

static int on_collect_all(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    (void)row, (void)value;
    flags->collect_all = true;
    return cordon_request_set_collect_all(flags->request, true, err);
}

static int on_output_dir(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row, (void)err;
    ((struct run_flags *)context)->output_dir = value;
    return 0;
}

static int on_sanitize(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct run_flags *flags = context;
    const char *what = !strcmp(value, "true") ? "secrets" : !strcmp(value, "false") ? "none" : value;
    (void)row;
    flags->sanitize = strcmp(what, "none") != 0;
    return cordon_request_add_sanitize(flags->request, what, err);
}

static int on_data_dir(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row, (void)err;
    ((struct run_flags *)context)->data_dir = value;
    return 0;
}

static int on_json(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct run_flags *)context)->json, row, value, err);
}

static int on_quiet(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct run_flags *)context)->quiet, row, value, err);
}

static int on_warm(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct run_flags *)context)->warm, row, value, err);
}

static int on_pty(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    bool pty = false;
    int code = option_set_flag(&pty, row, value, err);
    return code < 0 ? code : cordon_request_set_pty(((struct run_flags *)context)->request, pty, err);
}

static int on_no_cache(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct run_flags *)context)->no_cache, row, value, err);
}

#define HEADING(text)                                                                                                  \
    {                                                                                                                  \
        NULL, '\0', NULL, text, NULL, NULL                                                                             \
    }

static const struct option_row rows[] = {
    HEADING("Program"),
    {"language", 'l', "NAME", "id or alias, as in 'cordon languages'; by default told\nfrom the name of FILE",
     on_language, NULL},
    {"code", 'c', "CODE", "the program itself, instead of FILE", on_code, NULL},
    {"file", 0, "[DST=]SRC", "copy the host's file SRC into the work directory", on_file, NULL},
    {"stdin", 0, "TEXT|@FILE", "what the program reads, instead of Cordon's own input", on_stdin, NULL},
    {"env", 0, "K=V", "set an environment variable; none is inherited", on_env, NULL},
    {"env-secret", 0, "K=V", "the same, marked secret: redacted in output, in every form", on_env_secret, NULL},
    {"no-cache", 0, NULL, "compile anew, and do not keep what was compiled", on_no_cache, NULL},
    HEADING("Limits (sizes as 512m, 1g or bytes; times as 5s or 300ms)"),
    {"profile", 0, "NAME", "lightweight, standard (the default) or heavy", on_text, "profile"},
    {"wall", 0, "TIME", "time on the clock", on_limit, "wall_ms"},
    {"cpu", 0, "TIME", "processor time, of all its processes together", on_limit, "cpu_ms"},
    {"cpus", 0, "N", "share of processors, such as 0.5", on_limit, "cpus"},
    {"memory", 0, "SIZE", "memory of all its processes and files; never swap", on_limit, "memory_bytes"},
    {"processes", 0, "N", "processes and threads at one time", on_limit, "processes"},
    {"disk", 0, "SIZE", "bytes in /work, /tmp and /dev/shm together", on_limit, "disk_bytes"},
    {"inodes", 0, "N", "files and directories in them", on_limit, "inodes"},
    {"open-files", 0, "N", "open files of one process", on_limit, "open_files"},
    {"file-size", 0, "SIZE", "size of any one file", on_limit, "file_bytes"},
    {"output", 0, "SIZE", "bytes kept of standard output, and of standard error", on_limit, "output_bytes"},
    {"on-output-limit", 0, "cut|stop", "keep beginning and end (the default), or end the run", on_text,
     "on_output_limit"},
    HEADING("Isolation"),
    {"isolation", 0, "LEVEL", "container (the default)", on_text, "isolation"},
    {"network", 0, "MODE", "none (the default): only a loopback of its own", on_text, "network"},
    {"environment", 0, "NAME", "the files it sees; host (the default): this machine's\n/usr, read-only", on_text,
     "environment"},
    {"mount", 0, "SRC:DST[:rw]", "show a host directory or file at DST, read-only unless rw", on_mount, NULL},
    {"pty", 0, NULL,
     "let the program open pseudo-terminals (script, expect, tmux);\nno limit counts the kernel's work for them",
     on_pty, NULL},
    {"optional", 0, "CONTROL", "run even where this control cannot be enforced;\nsee 'cordon doctor' for the names",
     on_text, "optional"},
    {"warm", 0, NULL,
     "make a waiting cell first and run in that, as a long-lived\nengine does (for comparison: slower in all)", on_warm,
     NULL},
    HEADING("Results"),
    {"json", 0, NULL, "print one result object instead of the program's output", on_json, NULL},
    {"quiet", 'q', NULL, "do not say why a program was stopped", on_quiet, NULL},
    {"collect", 0, "GLOB", "return matching files of the work directory that the program\nmade or changed", on_collect,
     NULL},
    {"collect-all", 0, NULL, "the same of what it was given and did not change", on_collect_all, NULL},
    {"output-dir", 0, "DIR", "write collected files beneath DIR", on_output_dir, NULL},
    {"sanitize", 0, "WHAT", "redact output: true (secrets), all, a rule's name, or false", on_sanitize, NULL},
    {"data-dir", 0, "DIR", "record the run in the ledger there (CORDON_DATA_DIR)", on_data_dir, NULL},
};

_Static_assert(ARRAY_LEN(rows) <= OPTIONS_MAX, "the parser's tables are too small");

const struct usage run_usage = {
    .synopsis = "cordon run [OPTION...] FILE [ARGUMENT...]\n"
                "       cordon run [OPTION...] -l LANGUAGE -c CODE [-- ARGUMENT...]\n"
                "       cordon run [OPTION...] -l LANGUAGE - [ARGUMENT...]",
    .about = "Runs one program in a fresh cell and passes its output through. FILE '-' reads the\n"
             "program from standard input. Everything after FILE belongs to the program; '--' before FILE\n"
             "says that an option there is meant so. 'cordon run' records nothing and redacts nothing,\n"
             "unless --data-dir or --sanitize asks for it; the daemon does both.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .closing = "The exit code is the program's. Where it gave none: 124 wall, CPU or output limit, 137\n"
               "memory limit, 128+N signal N, 126 denied, 130 cancelled, 1 compile error, 2 bad usage,\n"
               "125 a failure of Cordon or a control that cannot be enforced.\n"
               "\n"
               "  cordon run -l python -c 'print(6*7)'\n"
               "  cordon run --wall 2s --memory 256m app.py arg1 < data.txt\n"
               "  cordon run --json -l js -c 'const x = 40 + 2; x'",
};

static const struct option_row *limit_row(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].handle == on_limit && rows[i].key && !strncmp(rows[i].key, name, length) && !rows[i].key[length])
            return &rows[i];
    return NULL;
}

void run_flags_put_reason(struct buf *line, const char *reason)
{
    static const char prefix[] = "limits.";
    for (const char *found; (found = strstr(reason, prefix));) {
        const char *name = found + strlen(prefix);
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
        const struct option_row *row = limit_row(name, length);
        buf_append(line, reason, (size_t)((row ? found : name + length) - reason));
        if (row)
            buf_printf(line, "--%s", row->long_name);
        reason = name + length;
    }
    buf_puts(line, reason);
}
