/* threat: 1.3-listen
 * attack: serve on TCP, on UDP and on an abstract socket where the host could be lured in
 * expect: status=ok
 * control: netns landlock
 * probe: listen
 * bare: reached
 */
#include "attack.h"

#include <arpa/inet.h>

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(given("LISTEN_PORT")))};
    int tcp = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(tcp, (struct sockaddr *)&address, sizeof address) || listen(tcp, 8))
        say("no listener: %s\n", strerror(errno));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s", given("LISTEN_UNIX"));
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(local, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) || listen(local, 8))
        say("no abstract listener: %s\n", strerror(errno));
    say("listening\n");
    struct pollfd ready[2] = {{tcp, POLLIN, 0}, {local, POLLIN, 0}};
    int64_t end = now_ms() + 700;
    while (now_ms() < end)
        if (poll(ready, 2, 50) > 0)
            for (int i = 0; i < 2; i++)
                if (ready[i].revents & POLLIN && accept(ready[i].fd, NULL, NULL) >= 0)
                    pwned("somebody outside connected");
    return held();
}
