/* threat: 1.6-cgroup
 * attack: find a control group file to write: release_agent, limits, another group's list of processes
 * expect: status=ok; denials~mount
 * control: mountns seccomp
 * bare: pwned as root
 */
#include "attack.h"

#include <sys/mount.h>

int main(void)
{
    const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer",
                                 "/sys/fs/cgroup/unified", "/proc/1/root/sys/fs/cgroup/memory", "cg"};
    const char *const names[] = {"release_agent", "notify_on_release", "cgroup.procs", "tasks", "memory.limit_in_bytes", "pids.max",
                                 "memory.max", "freezer.state", "cgroup.subtree_control", "cgroup.kill"};
    if (bare()) {
        int fd = open("/sys/fs/cgroup/memory/cgroup.procs", O_WRONLY);
        if (fd >= 0 || open("/sys/fs/cgroup/cgroup.procs", O_WRONLY) >= 0)
            pwned("a list of processes opened for writing");
        return held();
    }
    mkdir("cg", 0700);
    if (!mount("none", "cg", "cgroup2", 0, NULL) || !mount("none", "cg", "cgroup", 0, "memory")) {
        pwned("mounted a cgroup hierarchy");
        umount2("cg", MNT_DETACH);
    }
    for (size_t r = 0; r < sizeof roots / sizeof *roots; r++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            char path[PATH_MAX];
            snprintf(path, sizeof path, "%s/%s", roots[r], names[n]);
            int fd = open(path, O_WRONLY);
            if (fd >= 0)
                pwned("%s opened for writing", path);
            close(fd);
        }
    return held();
}
