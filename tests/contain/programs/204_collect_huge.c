/* threat: 1.2-huge
 * attack: offer the collector a file of a tebibyte without blocks, and one that grows while it is read
 * expect: status=ok|nonzero_exit|signaled|disk_limit|memory_limit; host-rss<64m; ends<8s; raw<16m
 * limits: --collect *.bin --file-size 4m --disk 32m
 * bare: no files are collected only from a cell
 */
#include "attack.h"

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    int huge = open("huge.bin", O_CREAT | O_WRONLY, 0600);
    if (ftruncate(huge, 1LL << 40))
        ftruncate(huge, 4 << 20);
    if (!fork()) {
        setsid();
        close(0);
        close(1);
        close(2);
        int fd = open("growing.bin", O_CREAT | O_WRONLY, 0600);
        char block[65536] = {1};
        for (;;)
            if (write(fd, block, sizeof block) < 0)
                lseek(fd, 0, SEEK_SET), ftruncate(fd, 0);
    }
    nap_ms(20);
    return held();
}
