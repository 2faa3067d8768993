/* threat: 1.3-families
 * attack: sweep every socket family beside unix and the internet, AF_ALG and XDP first
 * expect: status=ok; denials~AF_ALG
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM};
    if (socket(AF_ALG, SOCK_SEQPACKET, 0) >= 0)
        pwned("AF_ALG socket");
    for (int family = 0; family < 64; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK || family == AF_ALG)
            continue;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            int fd = socket(family, types[i], 0);
            if (fd >= 0)
                pwned("socket family %d type %d", family, types[i]);
            int pair[2];
            if (!socketpair(family, types[i], 0, pair))
                pwned("socket pair of family %d", family);
        }
    }
    return held();
}
