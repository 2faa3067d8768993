/* Who the process is: ids, capabilities, keyring. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "cell/sys.h"

int identity_become(unsigned id, bool own_ids)
{
    /* With a single mapped id setgroups is denied by the kernel and the caller's supplementary groups stay. */
    if (own_ids && syscall(SYS_setgroups, 0, NULL) < 0)
        return -1;
    /* Raw calls: the C library's would try to tell other threads, of which there are none. */
    if (syscall(SYS_setresgid, id, id, id) < 0)
        return -1;
    return (int)syscall(SYS_setresuid, id, id, id);
}

int identity_lock(void)
{
    if (MUTANT(CAPABILITIES))
        return 0;
    for (int cap = 0; cap <= CAP_LAST_CAP || prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap) < 0 && cap <= 37)
            return -1; /* up to CAP_AUDIT_READ every supported kernel knows them */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                        SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                        SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
}

int identity_drop_capabilities(void)
{
    if (MUTANT(CAPABILITIES))
        return 0;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    return (int)syscall(SYS_capset, &header, none);
}

/* The session keyring is inherited across clone and exec: without its own, a program reads its caller's keys. A kernel
 * without keys, or one that forbids them here, has nothing to leak. */
int identity_new_keyring(void)
{
    if (!MUTANT(KEYRING))
        sys_keyctl_join_session();
    return 0;
}

/* The host's out-of-memory killer should take a cell before anything of the host's own, and a caller's protection (a
 * negative score) must not be inherited. */
void identity_volunteer_for_oom(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "500", 3);
}
