/* threat: 1.7-writeback
 * attack: write and sync without pause in many processes, by fsync, sync and syncfs
 * expect: status=ok|wall_limit; silent; ends<8s
 * limits: --wall 2s
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 8; i++)
        if (!fork())
            break;
    int fd = open("storm", O_CREAT | O_RDWR, 0600);
    int64_t end = now_ms() + 1200;
    while (now_ms() < end) {
        pwrite(fd, "storm", 5, 0);
        fsync(fd);
        syncfs(fd);
    }
    return held();
}
