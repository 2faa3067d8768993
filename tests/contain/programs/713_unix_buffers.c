/* threat: 1.7-unix-buffers
 * attack: hold memory in full unix socket queues, and in descriptors in flight
 * expect: status=ok|memory_limit|nonzero_exit|signaled; silent; mem<400m; ends<12s
 * limits: --memory 64m --wall 8s
 * needs: cgroup
 * control: memory
 */
#include "attack.h"

int main(void)
{
    static char block[65536];
    for (int child = 0; child < 4; child++) {
        if (fork())
            continue;
        int ends[2], size = 1 << 24;
        while (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
            for (int i = 0; i < 2; i++) {
                setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
                while (send(ends[i], block, sizeof block, MSG_NOSIGNAL) > 0)
                    continue;
            }
        nap_ms(300);
        _exit(0);
    }
    int status, whole = 0;
    while (wait(&status) > 0)
        whole += WIFEXITED(status);
    if (whole == 4)
        pwned("four processes filled all their sockets under a limit of 64 MiB");
    return 0;
}
