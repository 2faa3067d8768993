/* threat: 1.7-disk
 * attack: write until the quota is full, then past it
 * expect: status=disk_limit; mem<400m
 * limits: --disk 16m --memory 256m --wall 8s
 * control: disk
 */
#include "attack.h"

int main(void)
{
    static char block[65536];
    memset(block, 1, sizeof block);
    signal(SIGXFSZ, SIG_IGN);
    size_t written = 0;
    for (int file = 0; file < 20; file++) {
        char path[32];
        snprintf(path, sizeof path, "fill-%d", file);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        for (int i = 0; fd >= 0 && i < 160 && write(fd, block, sizeof block) == sizeof block; i++)
            written += sizeof block;
        close(fd);
    }
    say("wrote %zu MiB\n", written / MIB);
    if (written > 17 * MIB)
        pwned("%zu MiB under a quota of 16 MiB", written / MIB);
    held();
    return 1;
}
