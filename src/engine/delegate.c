/* Owns the conversation with the systemd user manager, through busctl: a bus library would be a dependency of every
 * start for the sake of one call that only ordinary users on systemd make. */
#include "engine/delegate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define BUSCTL "/usr/bin/busctl"

static bool group_of(const char *who, char *path, size_t size)
{
    char file[48], text[1024];
    snprintf(file, sizeof file, "/proc/%s/cgroup", who);
    if (fd_read_text_at(AT_FDCWD, file, text, sizeof text) <= 0 || strncmp(text, "0::/", 4) != 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return (size_t)snprintf(path, size, "/sys/fs/cgroup%s", text + 3) < size;
}

bool delegate_wanted(void)
{
    char path[1200];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (geteuid() == 0 || !runtime || access(BUSCTL, X_OK) < 0 || !group_of("self", path, sizeof path))
        return false;
    /* A group of one's own, with nobody else in it, is a delegated one already. */
    char procs[64];
    auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return false;
    return faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0 ||
           (fd_read_text_at(dir, "cgroup.procs", procs, sizeof procs) > 0 && strchr(procs, '\n') &&
            strchr(procs, '\n')[1]);
}

static bool ask(pid_t pid, const char *scope)
{
    char number[16];
    snprintf(number, sizeof number, "%d", pid);
    char *argv[] = {(char *)"busctl",
                    (char *)"--user",
                    (char *)"--quiet",
                    (char *)"call",
                    (char *)"org.freedesktop.systemd1",
                    (char *)"/org/freedesktop/systemd1",
                    (char *)"org.freedesktop.systemd1.Manager",
                    (char *)"StartTransientUnit",
                    (char *)"ssa(sv)a(sa(sv))",
                    (char *)scope,
                    (char *)"fail",
                    (char *)"3",
                    (char *)"PIDs",
                    (char *)"au",
                    (char *)"1",
                    number,
                    (char *)"Delegate",
                    (char *)"b",
                    (char *)"true",
                    (char *)"CollectMode",
                    (char *)"s",
                    (char *)"inactive-or-failed",
                    (char *)"0",
                    NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions))
        return false;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    pid_t child;
    int failed = posix_spawn(&child, BUSCTL, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = -1;
    while (!failed && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return !failed && status == 0;
}

bool delegate_scope(pid_t pid)
{
    char scope[64], who[16], before[1200], now[1200];
    snprintf(scope, sizeof scope, "cordon-%d-%lx.scope", pid, (unsigned long)time(NULL));
    snprintf(who, sizeof who, "%d", pid);
    if (!group_of(who, before, sizeof before) || !ask(pid, scope))
        return false;
    /* The manager answers before it has moved the process. */
    for (int i = 0; i < 500; i++) {
        if (group_of(who, now, sizeof now) && strcmp(now, before) != 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return false;
}
