/* threat: 1.3-unix
 * attack: connect to an abstract socket of the host, as a stream and as datagrams
 * expect: status=ok
 * control: netns landlock
 * bare: bait
 */
#include "attack.h"

int main(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", given("BAIT_UNIX"));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (size_t i = 0; i < 2; i++) {
        int fd = socket(AF_UNIX, types[i], 0);
        if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, size)) {
            pwned("connected to @%s", given("BAIT_UNIX"));
            send(fd, "hit", 3, MSG_NOSIGNAL);
        }
        sendto(fd, "hit", 3, MSG_NOSIGNAL, (struct sockaddr *)&address, size);
        close(fd);
    }
    return held();
}
