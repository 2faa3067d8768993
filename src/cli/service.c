/* Finds cordon-service beside this executable or where it was installed, and becomes it. */
#include "cli/service.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"
#include "cli/terminal.h"

#define NAME "cordon-service"

int service_become(char **argv)
{
    char own[PATH_MAX], path[PATH_MAX + sizeof NAME];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length > 0) {
        own[length] = '\0';
        *strrchr(own, '/') = '\0';
        snprintf(path, sizeof path, "%s/" NAME, own);
        execv(path, argv);
    }
    if (errno == ENOENT)
        execv(CORDON_LIBEXECDIR "/" NAME, argv);
    terminal_say("%s cannot be started: %s (it belongs to the package of cordon)", NAME, strerror(errno));
    return EXIT_OWN_FAILURE;
}
