/* threat: 1.7-tmpfs shm
 * attack: take memory as files in every place that can be written: /dev/shm, /tmp, /work
 * expect: status=disk_limit|memory_limit; mem<400m; silent
 * limits: --memory 128m --disk 32m --wall 10s
 * control: disk
 */
#include "attack.h"

int main(void)
{
    static char block[65536];
    memset(block, 1, sizeof block);
    size_t taken = 0;
    const char *const places[] = {"/dev/shm", "/tmp", "/work", "/dev", "/run", "/var/tmp", "/"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int file = 0; file < 40; file++) {
            char path[64];
            snprintf(path, sizeof path, "%s/hoard-%d", places[i], file);
            int fd = open(path, O_CREAT | O_WRONLY, 0600);
            for (int j = 0; fd >= 0 && j < 256 && write(fd, block, sizeof block) > 0; j++)
                taken += sizeof block;
            close(fd);
        }
    say("took %zu MiB\n", taken / MIB);
    if (taken > 33 * MIB)
        pwned("wrote %zu MiB under a quota of 32 MiB", taken / MIB);
    return 1;
}
