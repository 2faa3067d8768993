/* What a Bash zygote loads as builtins (enable -f). `cordon_serve` returns in every copy of the shell; `cordon_take`
 * waits there for a program, puts its files in place and leaves in CORDON_START what the shell itself has to do. Bash's
 * own functions and records are looked up when the library is loaded: a shell that has not all of them serves nobody.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/cell.h"
#include "zygote/serve.h"

#define MESSAGE_MAX (128 << 10)

struct builtin {
    const char *name;
    int (*function)(void *words);
    int flags;
    const char *const *long_doc;
    const char *short_doc, *handle;
};

/* The beginnings of Bash's records. */
struct shell_variable {
    char *name, *value;
};
struct shell_user {
    uid_t uid, euid;
    gid_t gid, egid;
};

extern struct shell_variable *find_variable(const char *name) __attribute__((weak));
extern struct shell_variable *bind_variable(const char *name, char *value, int flags) __attribute__((weak));
extern void set_ppid(void) __attribute__((weak));
extern int initialize_job_control(int force) __attribute__((weak));
extern pid_t dollar_dollar_pid __attribute__((weak));
extern struct shell_user current_user __attribute__((weak));

static bool has_number(const char *name, uid_t number)
{
    const struct shell_variable *variable = find_variable(name);
    return variable && variable->value && strtoul(variable->value, NULL, 10) == number;
}

/* Whether the records are what they are taken for. */
static bool is_known_shell(void)
{
    return find_variable && bind_variable && set_ppid && initialize_job_control && &dollar_dollar_pid &&
           &current_user && dollar_dollar_pid == getpid() && current_user.uid == getuid() &&
           current_user.euid == geteuid() && current_user.gid == getgid() && current_user.egid == getegid() &&
           has_number("UID", getuid()) && has_number("EUID", geteuid());
}

static void set_number(const char *name, uid_t number)
{
    struct shell_variable *variable = find_variable(name);
    if (variable && asprintf(&variable->value, "%u", number) < 0)
        _exit(127);
}

/* What the shell learnt about its process when it started. */
static void learn_anew(void)
{
    dollar_dollar_pid = getpid();
    current_user = (struct shell_user){getuid(), geteuid(), getgid(), getegid()};
    set_number("UID", getuid());
    set_number("EUID", geteuid());
    set_ppid();
    initialize_job_control(0);
}

/* 0: there is time to warm up. 1: a program has come. */
static int serve(void *words)
{
    (void)words;
    static const char unknown[] = "zygote: this shell is built in a way that is not known\n";
    if (!is_known_shell()) {
        (void)!write(2, unknown, sizeof unknown - 1);
        _exit(1);
    }
    int r = zygote_serve(CELL_ZYGOTE_FD);
    if (r != 0)
        _exit(r == 1 ? 0 : 1);
    learn_anew();
    return zygote_is_awaited;
}

/* The items of a message, in order. */
struct items {
    const char *lengths, *at, *end;
};

static const char *next_item(struct items *items, size_t *length)
{
    char *rest;
    *length = strtoul(items->lengths, &rest, 10);
    if (rest == items->lengths || *length > (size_t)(items->end - items->at))
        _exit(127);
    items->lengths = rest;
    items->at += *length;
    return items->at - *length;
}

/* To be freed. */
static char *next_text(struct items *items)
{
    size_t length;
    const char *item = next_item(items, &length);
    char *text = strndup(item, length);
    if (!text)
        _exit(127);
    return text;
}

static unsigned long next_number(struct items *items, int base)
{
    auto_free char *text = next_text(items);
    return strtoul(text, NULL, base);
}

static bool write_file(char *path, mode_t mode, const char *content, size_t length)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    return fd >= 0 && fd_write_all(fd, content, length) == 0;
}

static void quote(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    fputs("' ", out);
}

static bool is_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return length && strspn(text, letters) >= length && (*text < '0' || *text > '9');
}

static void write_start(FILE *out, char *const *arguments, char *const *variables)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        _exit(127);
    fprintf(out, "RANDOM=%u SECONDS=0\nset -- ", seed);
    for (; *arguments; arguments++)
        quote(out, *arguments);
    for (; *variables; variables++) {
        size_t name = strcspn(*variables, "=");
        fprintf(out, "\nexport %.*s=", (int)name, *variables);
        quote(out, *variables + name + 1);
    }
}

/* What of this process's environment was for its own start. */
static bool is_ours(const char *variable)
{
    static const char *const names[] = {"BASH_ENV=", "CORDON_", "PWD=", "OLDPWD=", "SHLVL=", "_="};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (!strncmp(variable, names[i], strlen(names[i])))
            return true;
    return false;
}

/* A shell of its own for what a copy cannot do. Bash has its own setenv(), for its own variables. */
static _Noreturn void start_again(const char *entry, char *const *arguments, size_t argument_count,
                                  char *const *variables, size_t variable_count)
{
    size_t inherited = 0, count = 0;
    while (environ[inherited])
        inherited++;
    char **argv = calloc(argument_count + 3, sizeof *argv),
         **envp = calloc(inherited + variable_count + 1, sizeof *envp);
    if (!argv || !envp)
        _exit(127);
    argv[0] = (char *)"bash";
    argv[1] = (char *)entry;
    memcpy(argv + 2, arguments, argument_count * sizeof *argv);
    memcpy(envp, variables, variable_count * sizeof *envp);
    for (count = variable_count; *environ; environ++) {
        bool again = is_ours(*environ);
        for (size_t i = 0; i < variable_count && !again; i++)
            again = !strncmp(variables[i], *environ, strcspn(*environ, "=") + 1);
        if (!again)
            envp[count++] = *environ;
    }
    execvpe(*argv, argv, envp);
    _exit(127);
}

/* A list of texts, ended by NULL. */
static char **next_list(struct items *items, size_t *count)
{
    *count = next_number(items, 10);
    char **list = calloc(*count + 1, sizeof *list);
    if (!list)
        _exit(127);
    for (size_t i = 0; i < *count; i++)
        list[i] = next_text(items);
    return list;
}

static void free_list(char **list)
{
    for (char **text = list; *text; text++)
        free(*text);
    free(list);
}

static void write_files(struct items *items)
{
    for (size_t left = next_number(items, 10); left; left--) {
        size_t length;
        auto_free char *path = next_text(items);
        mode_t mode = (mode_t)next_number(items, 8);
        const char *content = next_item(items, &length);
        if (!write_file(path, mode, content, length)) {
            dprintf(2, "%s: %m\n", path);
            _exit(1);
        }
    }
}

static void start(struct items *items, const char *usual)
{
    size_t length, argument_count, variable_count;
    auto_free char *text = NULL;
    next_item(items, &length); /* the kind: both run alike */
    auto_free char *entry = next_text(items);
    char **arguments = next_list(items, &argument_count), **variables = next_list(items, &variable_count);
    write_files(items);
    bool again = strcmp(entry, usual) != 0;
    for (size_t i = 0; i < variable_count; i++)
        again |= !is_name(variables[i], strcspn(variables[i], "="));
    if (again)
        start_again(entry, arguments, argument_count, variables, variable_count);
    FILE *out = open_memstream(&text, &length);
    if (!out)
        _exit(127);
    write_start(out, arguments, variables);
    if (fclose(out) != 0 || !bind_variable("CORDON_START", text, 0))
        _exit(127);
    free_list(arguments);
    free_list(variables);
}

static int take(void *words)
{
    (void)words;
    static char message[MESSAGE_MAX + 1];
    if (!zygote_is_awaited && write(CELL_HANDOVER_FD, "r", 1) != 1)
        _exit(0);
    ssize_t n = read(CELL_HANDOVER_FD, message, MESSAGE_MAX);
    close(CELL_HANDOVER_FD);
    char *line_end = n > 0 ? memchr(message, '\n', (size_t)n) : NULL;
    if (!line_end)
        _exit(n > 0 ? 127 : 0);
    struct items items = {.lengths = message, .at = line_end + 1, .end = message + n};
    const char *usual = getenv("CORDON_ENTRY");
    start(&items, usual ? usual : "");
    return 0;
}

static const char *const no_help[] = {NULL};
#define EXPORTED __attribute__((visibility("default")))
EXPORTED struct builtin cordon_serve_struct = {"cordon_serve", serve, 1, no_help, "cordon_serve", NULL};
EXPORTED struct builtin cordon_take_struct = {"cordon_take", take, 1, no_help, "cordon_take", NULL};
