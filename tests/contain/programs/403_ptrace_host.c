/* threat: 1.4-ptrace
 * attack: trace a process of the host, read and write its memory, steal its descriptors
 * expect: status=ok; denials~ptrace
 * control: seccomp pidns
 * bare: secret as root
 */
#include "attack.h"

#include <sys/ptrace.h>
#include <sys/uio.h>

int main(void)
{
    pid_t victim = atoi(given("BAIT_PID"));
    if (!ptrace(PTRACE_SEIZE, victim, NULL, NULL)) {
        pwned("traced the host's process %d", victim);
        ptrace(PTRACE_DETACH, victim, NULL, NULL);
    }
    int pidfd = (int)syscall(SYS_pidfd_open, victim, 0);
    for (int fd = 0; pidfd >= 0 && fd < 16; fd++) {
        int stolen = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
        if (stolen >= 0)
            pwned("took descriptor %d of process %d", fd, victim);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", victim);
    spill(path);
    snprintf(path, sizeof path, "/proc/%d/mem", victim);
    if (open(path, O_RDWR) >= 0)
        pwned("opened the memory of process %d", victim);
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
    errno = 0;
    if (process_vm_readv(victim, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT)
        pwned("process_vm_readv reached process %d", victim);
    return held();
}
