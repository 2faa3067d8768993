/* Thin wrappers for system calls that glibc 2.36 has no function for. Safe on the child side: no errno tricks, no
 * allocation. Each returns what the kernel gave, -1 with errno on failure. */
#ifndef CELL_SYS_H
#define CELL_SYS_H

#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline pid_t sys_clone3(struct clone_args *args, size_t size)
{
    return (pid_t)syscall(SYS_clone3, args, size);
}

static inline int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_seccomp(unsigned operation, unsigned flags, void *args)
{
    return (int)syscall(SYS_seccomp, operation, flags, args);
}

static inline int sys_landlock_create_ruleset(const struct landlock_ruleset_attr *attr, size_t size, uint32_t flags)
{
    return (int)syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

static inline int sys_landlock_add_path(int ruleset, uint64_t allowed, int path_fd)
{
    struct landlock_path_beneath_attr attr = {.allowed_access = allowed, .parent_fd = path_fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
}

static inline int sys_landlock_restrict_self(int ruleset)
{
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

static inline long sys_keyctl_join_session(void)
{
    return syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL);
}

#endif
