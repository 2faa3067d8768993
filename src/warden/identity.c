/* Whose ids a cell has. The superuser's warden gives each living cell two host ids of its own, derived from its init's
 * pid, which no other living cell on the machine has; an ordinary user's cells all map to that user. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "cell/sys.h"
#include "warden/warden.h"

/* High enough to be nobody's; two ids a pid (at most 2^22) stay far below 2^31. */
#define HOST_ID_BASE 0x70000000U

bool identity_may_administer(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return data[0].effective & (1U << CAP_SYS_ADMIN);
}

static int write_map(pid_t pid, const char *file, const char *text)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return fd_write_text_at(AT_FDCWD, path, text);
}

/* Whether this process's user namespace knows the id at all: inside a container only few may exist. */
static bool id_exists(unsigned id)
{
    char text[1024];
    if (fd_read_text_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) <= 0)
        return false;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned inside, outside, count;
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && id >= inside && id - inside < count)
            return true;
    }
    return false;
}

bool identity_has_ids(void)
{
    return id_exists(HOST_ID_BASE) || id_exists(60001);
}

int identity_write_maps(struct warden *warden, struct cell *cell)
{
    char map[96];
    if (warden->rootless) {
        snprintf(map, sizeof map, "%d 0 1\n", CELL_UID);
        cell->uid = warden->uid;
        if (write_map(cell->init_pid, "setgroups", "deny") < 0)
            return -1;
    } else {
        unsigned id = HOST_ID_BASE + 2 * (unsigned)cell->init_pid;
        if (id_exists(id + 1))
            cell->controls |= CONTROL_BIT(CONTROL_OWN_UID);
        else /* a container with a 16-bit range of ids: still not the host's root */
            id = 20000 + 2 * ((unsigned)cell->init_pid % 20000);
        if (MUTANT(OWN_UID))
            id = HOST_ID_BASE;
        cell->uid = MUTANT(USERNS) ? 0 : id + 1; /* as if ids were only renamed: the host's root under another name */
        snprintf(map, sizeof map, "0 %u 1\n%d %u 1\n", id, CELL_UID, cell->uid);
    }
    if (!(cell->namespaces & CLONE_NEWUSER))
        return 0;
    return write_map(cell->init_pid, "uid_map", map) < 0 || write_map(cell->init_pid, "gid_map", map) < 0 ? -1 : 0;
}

/* An ordinary user, or a superuser without CAP_SYS_ADMIN, becomes root of a namespace that holds that one id. */
int identity_enter_own_userns(uid_t uid, gid_t gid)
{
    char map[48];
    if (unshare(CLONE_NEWUSER) < 0)
        return -1;
    if (fd_write_text_at(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1\n", uid);
    if (fd_write_text_at(AT_FDCWD, "/proc/self/uid_map", map) < 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1\n", gid);
    return fd_write_text_at(AT_FDCWD, "/proc/self/gid_map", map);
}

int identity_mount_userns(struct warden *warden, const struct cell *cell)
{
    int hold[2];
    if (pipe2(hold, O_CLOEXEC) < 0)
        return -1;
    auto_close int read_end = hold[0], write_end = hold[1];
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = 0};
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid < 0)
        return -1;
    if (pid == 0) {
        char byte;
        close(write_end);
        (void)!read(read_end, &byte, 1);
        _exit(0);
    }
    char map[48], path[48];
    int fd = -1;
    snprintf(map, sizeof map, "%u %u 1\n", warden->uid, cell->uid);
    int mapped = write_map(pid, "uid_map", map);
    snprintf(map, sizeof map, "%u %u 1\n", warden->gid, cell->uid);
    if (mapped == 0 && write_map(pid, "gid_map", map) == 0) {
        snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    int saved = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, __WALL);
    errno = saved;
    return fd;
}
