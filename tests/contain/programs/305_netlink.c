/* threat: 1.3-netlink
 * attack: open netlink to nftables, uevents, audit, generic and socket diagnostics, and list the host's interfaces
 * expect: status=ok; denials~AF_NETLINK
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

static void list_links(void)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } ask = {{.nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}, {0}};
    char answer[32768];
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0)
        return;
    int length = (int)recv(fd, answer, sizeof answer, 0);
    for (struct nlmsghdr *head = (struct nlmsghdr *)answer; NLMSG_OK(head, length); head = NLMSG_NEXT(head, length)) {
        struct ifinfomsg *link = NLMSG_DATA(head);
        if (head->nlmsg_type == RTM_NEWLINK && !(link->ifi_flags & IFF_LOOPBACK) && link->ifi_flags & IFF_UP)
            pwned("interface %d of the host is visible", link->ifi_index);
    }
}

int main(void)
{
    const int families[] = {NETLINK_NETFILTER, NETLINK_KOBJECT_UEVENT, NETLINK_AUDIT, NETLINK_GENERIC, NETLINK_SOCK_DIAG,
                            NETLINK_XFRM, NETLINK_CONNECTOR, NETLINK_CRYPTO, NETLINK_SELINUX, NETLINK_FIB_LOOKUP};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        int fd = socket(AF_NETLINK, SOCK_RAW, families[i]);
        if (fd >= 0)
            pwned("netlink family %d opened", families[i]);
    }
    list_links();
    return held();
}
