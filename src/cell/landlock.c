/* Landlock: a second fence round the same files that the mounts already bound, and round abstract sockets and signals
 * where the kernel has scopes. Built in the cell's own mounts, after pivot. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "cell/sys.h"

#define READ_EXEC (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* Bits newer than the build's headers. */
#define FS_REFER                   (UINT64_C(1) << 13)
#define FS_TRUNCATE                (UINT64_C(1) << 14)
#define FS_IOCTL_DEV               (UINT64_C(1) << 15)
#define FS_BASE                    ((UINT64_C(1) << 13) - 1)
#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL               (UINT64_C(1) << 1)

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

/* A rule on a file may only carry rights that make sense for a file. */
static int allow(int ruleset, const char *path, uint64_t access, uint64_t handled)
{
    auto_close int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        access &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  FS_TRUNCATE | FS_IOCTL_DEV;
    return sys_landlock_add_path(ruleset, access & handled, fd);
}

int landlock_prepare(struct landlock *landlock)
{
    *landlock = (struct landlock){.ruleset = -1};
    if (MUTANT(LANDLOCK) || MUTANT(INIT_HIDDEN)) /* Landlock alone would hide init too */
        return 0;
    int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return 0;
    uint64_t handled = FS_BASE;
    if (abi >= 2)
        handled |= FS_REFER;
    if (abi >= 3)
        handled |= FS_TRUNCATE;
    if (abi >= 5)
        handled |= FS_IOCTL_DEV;
    struct ruleset_attr attr = {.handled_access_fs = handled};
    if (abi >= 6)
        attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 16 : 8;
    auto_close int ruleset =
        sys_landlock_create_ruleset((const struct landlock_ruleset_attr *)(const void *)&attr, size, 0);
    if (ruleset < 0)
        return -1;
    const uint64_t everything = handled;
    const uint64_t device = READ_EXEC | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
    const struct {
        const char *path;
        uint64_t access;
    } rules[] = {
        {"/", READ_EXEC},         {"/work", everything}, {"/tmp", everything},
        {"/dev/shm", everything}, {"/dev", device},      {"/proc", READ_EXEC | LANDLOCK_ACCESS_FS_WRITE_FILE},
    };
    for (unsigned i = 0; i < ARRAY_LEN(rules); i++)
        if (allow(ruleset, rules[i].path, rules[i].access, handled) < 0)
            return -1;
    *landlock = (struct landlock){take_fd(&ruleset), handled};
    return 0;
}

int landlock_apply(struct landlock *landlock, const struct plan_mount *mounts, size_t mount_count)
{
    auto_close int ruleset = take_fd(&landlock->ruleset);
    if (ruleset < 0)
        return 0;
    for (size_t i = 0; i < mount_count; i++)
        if (mounts[i].writable && allow(ruleset, mounts[i].destination, landlock->handled, landlock->handled) < 0)
            return -1;
    return sys_landlock_restrict_self(ruleset);
}
