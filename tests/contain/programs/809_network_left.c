/* threat: 1.8-network
 * attack: leave ports in TIME_WAIT and an abstract listener hidden in a descriptor cycle for the next run
 * expect: status=ok
 * stages: plant find
 * control: netns
 * bare: pwned
 */
#include "attack.h"

#include <arpa/inet.h>

static socklen_t abstract(struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "left-%s", given("MARK"));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void plant(struct sockaddr_in *address)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)address, sizeof *address) || listen(listener, 4))
        return;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (!connect(fd, (struct sockaddr *)address, sizeof *address)) {
        int peer = accept(listener, NULL, NULL);
        shutdown(peer, SHUT_RDWR);
        close(peer);
        close(fd);
    }
    struct sockaddr_un name;
    socklen_t size = abstract(&name);
    int hidden = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
    if (bind(hidden, (struct sockaddr *)&name, size) || listen(hidden, 4) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return;
    char room[CMSG_SPACE(3 * sizeof(int))] = {0};
    struct iovec byte = {"x", 1};
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(3 * sizeof(int));
    memcpy(CMSG_DATA(head), (int[]){hidden, pair[0], pair[1]}, 3 * sizeof(int));
    sendmsg(pair[0], &message, 0);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(given("LISTEN_PORT"))), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (argc > 1 && !strcmp(argv[argc - 1], "plant")) {
        plant(&address);
        return held();
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) && errno == EADDRINUSE)
        pwned("the earlier run's port is still in use");
    struct sockaddr_un name;
    socklen_t size = abstract(&name);
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    if (!connect(local, (struct sockaddr *)&name, size))
        pwned("the earlier run's hidden listener answers");
    return held();
}
