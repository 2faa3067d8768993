/* threat: 1.7-inodes
 * attack: make empty files until the kernel's inode memory is gone
 * expect: status=disk_limit; ends<10s
 * limits: --inodes 1000 --wall 8s
 * control: inodes
 */
#include "attack.h"

int main(void)
{
    int made = 0;
    const char *const places[] = {"/work", "/tmp", "/dev/shm"};
    for (size_t i = 0; i < 3; i++)
        for (int file = 0; file < 10000; file++) {
            char path[64];
            snprintf(path, sizeof path, "%s/i%d", places[i], file);
            int fd = open(path, O_CREAT | O_WRONLY, 0600);
            if (fd < 0)
                break;
            close(fd);
            made++;
        }
    say("made %d\n", made);
    if (made > 1000)
        pwned("%d files under a quota of 1000 inodes", made);
    held();
    return 1;
}
