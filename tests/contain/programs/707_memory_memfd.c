/* threat: 1.7-memfd
 * attack: take memory as memfds, which no process limit counts
 * expect: status=memory_limit; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * needs: cgroup
 * control: memory
 */
#include "attack.h"

int main(void)
{
    static char block[65536];
    memset(block, 1, sizeof block);
    signal(SIGXFSZ, SIG_IGN);
    size_t taken = 0;
    for (int file = 0; file < 64; file++) {
        int fd = memfd_create("hoard", MFD_CLOEXEC);
        for (int i = 0; fd >= 0 && i < 256 && write(fd, block, sizeof block) > 0; i++)
            taken += sizeof block;
    }
    say("took %zu MiB\n", taken / MIB);
    if (taken > 256 * MIB)
        pwned("held %zu MiB in memfds", taken / MIB);
    return 0;
}
