/* Owns the process's own restrictions. What cannot be had is an error, but for Landlock on a kernel without it. */
#include "service/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cell/sys.h"

#define STEP        "confine"
#define OWN_USER    "cordon"
#define SHARED_USER "nobody"

struct ids {
    uid_t uid;
    gid_t gid;
};

/* The user that was asked for, else the daemon's own, else the one that every system has. */
static const char *name_of(const char *user)
{
    if (user && *user)
        return user;
    return getpwnam(OWN_USER) ? OWN_USER : SHARED_USER;
}

static int find_user(const char *user, struct ids *ids, cordon_error *err)
{
    const struct passwd *row = getpwnam(name_of(user));
    if (!row)
        return error_set(err, CORDON_EINVAL, STEP, "user: there is no user '%s'", name_of(user));
    *ids = (struct ids){row->pw_uid, row->pw_gid};
    return 0;
}

static struct ids owner; /* nftw() has no context */

static int give(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)type;
    (void)at;
    return st->st_uid == owner.uid || lchown(path, owner.uid, owner.gid) == 0 ? 0 : -1;
}

int confine_prepare(const char *user, const char *data_dir, cordon_error *err)
{
    if (geteuid() != 0)
        return 0;
    int code = find_user(user, &owner, err);
    if (code < 0)
        return code;
    if (mkdir(data_dir, 0700) < 0 && errno != EEXIST)
        return error_sys(err, errno, STEP, "cannot make %s", data_dir);
    if (nftw(data_dir, give, 16, FTW_PHYS) != 0)
        return error_sys(err, errno, STEP, "cannot give %s to the daemon's user", data_dir);
    return 0;
}

static int drop_privileges(const char *user, cordon_error *err)
{
    struct ids ids = {0};
    if (geteuid() != 0)
        return 0;
    int code = find_user(user, &ids, err);
    if (code < 0)
        return code;
    if (setgroups(0, NULL) < 0 || setresgid(ids.gid, ids.gid, ids.gid) < 0 || setresuid(ids.uid, ids.uid, ids.uid) < 0)
        return error_sys(err, errno, STEP, "cannot become another user");
    return setresuid(0, 0, 0) == 0 ? error_set(err, CORDON_ESTATE, STEP, "the rights of the superuser did not go") : 0;
}

static int allow_path(int ruleset, const char *path, uint64_t access)
{
    auto_close int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? -1 : sys_landlock_add_path(ruleset, access, fd);
}

/* Nothing may be written but the data, and nothing be executed. Reading is left to the rights of its user: what a run
 * made is collected from a file system that lies beneath no path here. */
static int fence_files(const char *data_dir, cordon_error *err)
{
    int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return 0;
    const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    struct landlock_ruleset_attr attr = {.handled_access_fs = ((UINT64_C(1) << 13) - 1) & ~reading};
    const uint64_t writing = attr.handled_access_fs & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE;
    auto_close int ruleset = sys_landlock_create_ruleset(&attr, sizeof attr.handled_access_fs, 0);
    if (ruleset < 0 || allow_path(ruleset, data_dir, writing) < 0 || sys_landlock_restrict_self(ruleset) < 0)
        return error_sys(err, errno, STEP, "cannot fence the daemon's files");
    return 0;
}

/* A directory above the data may be closed to the user that it has been given to. */
static int check_data(const char *user, const char *data_dir, cordon_error *err)
{
    if (access(data_dir, R_OK | W_OK | X_OK) == 0)
        return 0;
    error_sys(err, errno, STEP, "user '%s' cannot use %s", name_of(user), data_dir);
    return error_hint(err, "choose a data_dir beneath directories that it may enter, or another user");
}

static const int refused[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fspick),
    SCMP_SYS(fsmount),
    SCMP_SYS(fsconfig),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(acct),
    SCMP_SYS(personality),
    SCMP_SYS(syslog),
    SCMP_SYS(quotactl),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
};

static int filter_calls(cordon_error *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int failed = filter ? 0 : -ENOMEM;
    for (size_t i = 0; i < ARRAY_LEN(refused) && !failed; i++)
        failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
    /* Threads are made by clone without any of these; a filter cannot see into clone3's arguments. */
    uint64_t namespaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (!failed)
        failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    for (uint64_t bit = 1; bit && !failed; bit <<= 1)
        if (namespaces & bit)
            failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                      SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    if (!failed)
        failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!failed)
        failed = seccomp_load(filter);
    seccomp_release(filter);
    return failed ? error_sys(err, -failed, STEP, "cannot restrict the daemon's system calls") : 0;
}

bool confine_is_shared(const char *user)
{
    return geteuid() == 0 && !strcmp(name_of(user), SHARED_USER);
}

int confine_self(const char *user, const char *data_dir, cordon_error *err)
{
    int code = drop_privileges(user, err);
    if (code == 0)
        code = check_data(user, data_dir, err);
    if (code == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        code = error_sys(err, errno, STEP, "cannot refuse new privileges");
    if (code == 0)
        code = fence_files(data_dir, err);
    return code == 0 ? filter_calls(err) : code;
}
