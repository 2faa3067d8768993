/* threat: 1.3-loopback
 * attack: connect to a TCP service on the host's IPv4 loopback
 * expect: status=ok
 * control: netns
 * bare: bait
 */
#include "attack.h"

#include <arpa/inet.h>

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(given("BAIT_TCP4")))};
    const char *const hosts[] = {"127.0.0.1", "0.0.0.0", "127.1.2.3"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        inet_pton(AF_INET, hosts[i], &address.sin_addr);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address) && send(fd, "hit", 3, MSG_NOSIGNAL) == 3)
            pwned("connected to %s", hosts[i]);
        close(fd);
    }
    return held();
}
