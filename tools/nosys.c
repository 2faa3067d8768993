/* nosys CALL,CALL,... [--] COMMAND...: runs a command for which those system calls do not exist, as on an older kernel.
 * The suite is run once under it, so that every fallback in the runner is really taken. A call may be NAME, NUMBER, or
 * NAME=NUMBER for one that libseccomp does not know. */
#include <ctype.h>
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Like env(1): 125 is a fault of this program, 126 and 127 of the command. */
enum { FAULT = 125, CANNOT_RUN = 126, NOT_FOUND = 127 };

/* The number, or a negative one that libseccomp uses for calls the native architecture lacks. */
static int call_number(char *text)
{
    char *number = strchr(text, '=');
    if (number)
        *number++ = '\0';
    else if (isdigit((unsigned char)*text))
        number = text;
    if (!number)
        return seccomp_syscall_resolve_name(text);
    char *end;
    long nr = strtol(number, &end, 10);
    return end == number || *end || nr < 0 || nr > 0xffff ? __NR_SCMP_ERROR : (int)nr;
}

static int hide_calls(scmp_filter_ctx filter, char *list)
{
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        int nr = call_number(name);
        if (nr == __NR_SCMP_ERROR) {
            fprintf(stderr, "nosys: unknown system call '%s'\n", name);
            return -1;
        }
        int code = nr < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
        if (code && code != -EEXIST) {
            fprintf(stderr, "nosys: %s: %s\n", name, strerror(-code));
            return -1;
        }
    }
    return 0;
}

static int install(char *list)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter) {
        fputs("nosys: out of memory\n", stderr);
        return -1;
    }
    /* Root needs no no_new_privs for a filter, and with it setuid helpers would fail for a reason of our own making. */
    int code = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() != 0);
    /* int 0x80 reaches the same calls, and stays as it is: what is tested is fallbacks, not containment. */
    if (!code)
        code = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
    if (!code && hide_calls(filter, list)) {
        seccomp_release(filter);
        return -1;
    }
    if (!code)
        code = seccomp_load(filter);
    seccomp_release(filter);
    if (code) {
        fprintf(stderr, "nosys: installing the filter: %s\n", strerror(-code));
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int first = argc > 2 && !strcmp(argv[2], "--") ? 3 : 2;
    if (argc <= first) {
        fputs("usage: nosys CALL,CALL,... [--] COMMAND...\n", stderr);
        return FAULT;
    }
    if (install(argv[1]))
        return FAULT;
    execvp(argv[first], argv + first);
    int code = errno;
    fprintf(stderr, "nosys: %s: %s\n", argv[first], strerror(code));
    return code == ENOENT ? NOT_FOUND : CANNOT_RUN;
}
