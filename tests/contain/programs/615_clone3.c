/* threat: 1.6-clone3
 * attack: hide namespace flags in the memory that clone3 reads
 * expect: status=ok
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <linux/sched.h>

int main(void)
{
    const uint64_t flags[] = {0, CLONE_NEWUSER, CLONE_NEWUSER | CLONE_NEWNS, CLONE_NEWUSER | CLONE_NEWNET};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct clone_args arguments = {.flags = flags[i], .exit_signal = SIGCHLD};
        long child = syscall(SYS_clone3, &arguments, sizeof arguments);
        if (!child)
            _exit(0);
        if (child > 0) {
            waitpid((pid_t)child, NULL, 0);
            pwned("clone3 with flags %#llx", (unsigned long long)flags[i]);
        } else if (errno != ENOSYS) {
            pwned("clone3 answers %s, not ENOSYS", strerror(errno));
        }
    }
    return held();
}
