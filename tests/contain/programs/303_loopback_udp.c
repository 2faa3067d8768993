/* threat: 1.3-loopback
 * attack: send datagrams to the host's loopback by sendto, sendmsg, sendmmsg and connected send
 * expect: status=ok
 * control: netns
 * bare: bait
 */
#include "attack.h"

#include <arpa/inet.h>

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(given("BAIT_UDP"))),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct iovec part = {"hit", 3};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1}};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    sendto(fd, "hit", 3, 0, (struct sockaddr *)&address, sizeof address);
    sendmsg(fd, &message.msg_hdr, 0);
    sendmmsg(fd, &message, 1, 0);
    if (!connect(fd, (struct sockaddr *)&address, sizeof address))
        send(fd, "hit", 3, MSG_NOSIGNAL);
    return held();
}
