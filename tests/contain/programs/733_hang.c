/* threat: 1.7-hang
 * attack: hang in open of a fifo, in a lock and in a full pipe past the deadline
 * expect: status=wall_limit; silent; ends<5s
 * limits: --wall 1s
 * control: wall
 */
#include "attack.h"

#include <sys/file.h>

int main(void)
{
    mkfifo("fifo", 0600);
    int lock = open("lock", O_CREAT | O_RDWR, 0600);
    flock(lock, LOCK_EX);
    if (!fork())
        flock(open("lock", O_RDWR), LOCK_EX);
    if (!fork()) {
        int ends[2];
        char block[65536] = {0};
        for (int i = pipe(ends); i < 64; i++)
            if (write(ends[1], block, sizeof block) < 0)
                break;
    }
    alarm(6);
    open("fifo", O_RDONLY);
    return 0;
}
