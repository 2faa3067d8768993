/* What the kernel shows of the environment that a zygote was started with: /proc/PID/environ reads the strings where
 * the kernel put them at exec, whatever became of the variables since. */
#include "zygote/environment.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The C library's: where the stack began, with the count of arguments and their addresses. */
extern void *__libc_stack_end __attribute__((weak));

/* More than a manifest's command line and variables take; a longer stretch is not what it is taken for. */
#define ENVIRONMENT_MAX (1 << 20)

/* Variables for the start of the zygote itself, and what the shell before it left. */
static bool is_of_the_start(const char *variable)
{
    static const char *const names[] = {"LD_PRELOAD=", "LD_BIND_NOW=", "BASH_ENV=", "CORDON_", "PWD=", "OLDPWD="};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (!strncmp(variable, names[i], strlen(names[i])))
            return true;
    return false;
}

static void forget_address(const char *variable)
{
    char **kept = environ;
    for (char **at = environ; at && *at; at++)
        if (*at != variable)
            *kept++ = *at;
    if (environ)
        *kept = NULL;
}

/* The strings of the environment lie between the last argument and the name of the executed file. */
void environment_forget_start(void)
{
    if (!&__libc_stack_end || !__libc_stack_end)
        return;
    intptr_t count = *(intptr_t *)__libc_stack_end;
    char *const *arguments = (char **)__libc_stack_end + 1;
    char *end = (char *)getauxval(AT_EXECFN), *at = count > 0 ? arguments[count - 1] : NULL;
    if (!at || !end || at >= end || end - at > ENVIRONMENT_MAX)
        return;
    for (at += strlen(at) + 1; at < end;) {
        size_t length = strlen(at);
        if (is_of_the_start(at)) {
            forget_address(at);
            explicit_bzero(at, length);
        }
        at += length + 1;
    }
}
