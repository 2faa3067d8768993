/* threat: 1.3-loopback
 * attack: connect to a TCP service on the host's IPv6 loopback, and to the IPv4 one by its mapped address
 * expect: status=ok
 * control: netns
 * bare: bait
 */
#include "attack.h"

#include <arpa/inet.h>

static void call(const char *host, const char *port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
    inet_pton(AF_INET6, host, &address.sin6_addr);
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address) && send(fd, "hit", 3, MSG_NOSIGNAL) == 3)
        pwned("connected to %s", host);
    close(fd);
}

int main(void)
{
    call("::1", given("BAIT_TCP6"));
    call("::ffff:127.0.0.1", given("BAIT_TCP4"));
    return held();
}
