/* threat: 1.7-udp-buffers
 * attack: hold memory in UDP receive queues
 * expect: status=ok|memory_limit|nonzero_exit|signaled; mem<400m; ends<15s; silent
 * limits: --memory 64m --wall 10s
 * control: tcp_buffers
 */
#include "attack.h"

#include <arpa/inet.h>

int main(void)
{
    static char block[32768];
    for (int child = 0; child < 2; child++) {
        if (fork())
            continue;
        int out = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), size = 1 << 26;
        setsockopt(out, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        for (int i = 0; i < 900; i++) {
            struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            socklen_t length = sizeof address;
            int in = socket(AF_INET, SOCK_DGRAM, 0);
            setsockopt(in, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
            if (in < 0 || bind(in, (struct sockaddr *)&address, sizeof address) || getsockname(in, (struct sockaddr *)&address, &length))
                break;
            struct iovec part = {block, sizeof block};
            struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1};
            for (int j = 0; j < 16; j++)
                sendmsg(out, &message, 0);
        }
        nap_ms(400);
        _exit(0);
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
