/* threat: 1.7-pipes
 * attack: hold memory in full pipes over several processes
 * expect: status=ok|memory_limit|nonzero_exit|signaled|process_limit; silent; mem<400m; ends<12s
 * limits: --memory 64m --wall 8s
 * needs: cgroup
 */
#include "attack.h"

static void fill(void)
{
    static char block[65536];
    int ends[2];
    while (!pipe2(ends, O_NONBLOCK)) {
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        while (write(ends[1], block, sizeof block) > 0)
            continue;
    }
    nap_ms(500);
}

int main(void)
{
    for (int i = 0; i < 8; i++)
        if (!fork()) {
            fill();
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
