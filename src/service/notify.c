/* The two small protocols of systemd, without its library. */
#include "service/notify.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

void notify_tell(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof at.sun_path || (*path != '/' && *path != '@'))
        return;
    memcpy(at.sun_path, path, length);
    if (*path == '@')
        at.sun_path[0] = '\0';
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&at,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

#define FIRST_FD 3

int notify_socket(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (!pid || !count || strtol(pid, NULL, 10) != getpid() || strtol(count, NULL, 10) < 1)
        return -1;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
    return FIRST_FD;
}
