/* threat: 1.3-metadata
 * attack: ask the cloud metadata services for credentials, and reach for the internet
 * expect: status=ok; denials~connect; ends<6s
 * bare: unsafe leaves the machine
 */
#include "attack.h"

#include <arpa/inet.h>

static void call(int family, const void *address, socklen_t size, const char *name)
{
    const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (size_t i = 0; i < 2; i++) {
        int fd = socket(family, types[i] | SOCK_NONBLOCK, 0);
        if (fd >= 0 && (!connect(fd, address, size) || errno == EINPROGRESS))
            pwned("there is a route to %s", name);
        close(fd);
    }
}

int main(void)
{
    const char *const v4[] = {"169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.2.1", "10.0.0.1", "8.8.8.8", "224.0.0.1"};
    const char *const v6[] = {"fd00:ec2::254", "2001:db8::1", "fe80::1"};
    for (size_t i = 0; i < sizeof v4 / sizeof *v4; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
        inet_pton(AF_INET, v4[i], &address.sin_addr);
        call(AF_INET, &address, sizeof address, v4[i]);
    }
    for (size_t i = 0; i < sizeof v6 / sizeof *v6; i++) {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
        inet_pton(AF_INET6, v6[i], &address.sin6_addr);
        call(AF_INET6, &address, sizeof address, v6[i]);
    }
    return held();
}
