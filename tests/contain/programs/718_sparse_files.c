/* threat: 1.7-sparse
 * attack: make files of a tebibyte without blocks, and write past the size limit
 * expect: status=disk_limit|nonzero_exit|signaled
 * limits: --file-size 4m --wall 8s
 * control: file_size
 */
#include "attack.h"

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const char *const places[] = {"/work/s", "/tmp/s", "/dev/shm/s"};
    for (size_t i = 0; i < 3; i++) {
        int fd = open(places[i], O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            continue;
        if (!ftruncate(fd, 1LL << 40))
            pwned("%s is a tebibyte long", places[i]);
        if (!fallocate(fd, 0, 0, 8 * MIB))
            pwned("%s has 8 MiB reserved under a limit of 4 MiB", places[i]);
        if (pwrite(fd, "x", 1, 8 * MIB) == 1)
            pwned("%s is past the limit of 4 MiB", places[i]);
    }
    held();
    return 1;
}
