/* threat: 1.3-packet
 * attack: open packet sockets, raw sockets and ICMP to see or forge traffic
 * expect: status=ok; denials~AF_PACKET
 * control: seccomp
 * bare: pwned as root
 */
#include "attack.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

int main(void)
{
    if (socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)) >= 0)
        pwned("raw packet socket");
    if (socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL)) >= 0)
        pwned("cooked packet socket");
    const int protocols[] = {IPPROTO_ICMP, IPPROTO_RAW, IPPROTO_TCP, IPPROTO_UDP};
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        if (socket(AF_INET, SOCK_RAW, protocols[i]) >= 0)
            pwned("raw IPv4 socket, protocol %d", protocols[i]);
        if (socket(AF_INET6, SOCK_RAW, protocols[i] == IPPROTO_ICMP ? IPPROTO_ICMPV6 : protocols[i]) >= 0)
            pwned("raw IPv6 socket, protocol %d", protocols[i]);
    }
    return held();
}
