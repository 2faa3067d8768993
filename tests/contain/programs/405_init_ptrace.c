/* threat: 1.4-init
 * attack: trace, read, write, stop, kill and rob the cell's init, which runs beside the program
 * expect: status=ok; denials~ptrace
 * control: seccomp init_hidden
 * bare: unsafe attacks process 1
 */
#include "attack.h"

#include <sys/ptrace.h>
#include <sys/uio.h>

int main(void)
{
    if (!ptrace(PTRACE_ATTACH, 1, NULL, NULL) || !ptrace(PTRACE_SEIZE, 1, NULL, NULL))
        pwned("traced init");
    char bytes[16];
    for (uintptr_t at = 0x400000; at < 0x600000; at += 4096) {
        struct iovec here = {bytes, sizeof bytes}, there = {(void *)at, sizeof bytes};
        if (process_vm_readv(1, &here, 1, &there, 1, 0) > 0 || process_vm_writev(1, &here, 1, &there, 1, 0) > 0) {
            pwned("reached the memory of init at %#lx", (unsigned long)at);
            break;
        }
    }
    const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR};
    for (size_t i = 0; i < 3; i++)
        if (open("/proc/1/mem", modes[i]) >= 0)
            pwned("opened the memory of init, mode %d", modes[i]);
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    for (int fd = 0; pidfd >= 0 && fd < 64; fd++)
        if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0)
            pwned("took descriptor %d of init", fd);
    struct rlimit zero = {0, 0};
    if (!prlimit(1, RLIMIT_NOFILE, &zero, NULL))
        pwned("changed a limit of init");
    for (int signal = 1; signal < 65; signal++)
        kill(1, signal);
    nap_ms(50);
    return held();
}
