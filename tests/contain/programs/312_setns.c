/* threat: 1.3-setns
 * attack: enter another network namespace by setns on /proc links and pidfds, or make one to own it
 * expect: status=ok; denials~setns
 * control: seccomp
 * bare: pwned as root
 */
#include "attack.h"

int main(void)
{
    DIR *proc = opendir("/proc");
    const char *const kinds[] = {"net", "mnt", "pid", "user", "ipc", "uts", "cgroup"};
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        int pid = atoi(entry->d_name);
        if (pid <= 0 || (pid != atoi(given("BAIT_PID")) && (pid > 64 || bare())))
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            char path[64];
            snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kinds[i]);
            int fd = open(path, O_RDONLY);
            if (fd >= 0 && !setns(fd, 0))
                pwned("entered %s", path);
            close(fd);
        }
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd >= 0 && !setns(pidfd, CLONE_NEWNET))
            pwned("entered the network of %d", pid);
        close(pidfd);
    }
    if (!unshare(CLONE_NEWNET))
        pwned("made a network namespace");
    return held();
}
