/* Owns sockets whose request was answered before all of its body was read. Closing such a socket at once makes the
 * kernel reset the connection, and a client that is still sending sees a broken pipe instead of the answer. So the
 * server keeps a copy of the descriptor, reads and drops what comes for a bounded time and amount, and then closes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/internal.h"

/* A larger amount lets a client waste more of the daemon's time; with a smaller one a client that sends much without
 * listening sees no answer. */
#define DROP_BYTES ((size_t)64 << 20)
#define DROP_US    UINT64_C(30000000)
/* Each is a descriptor; the oldest is closed when there is one more. */
#define LINGERING_MAX 64

struct leftover {
    struct leftover *next;
    struct http_server *server;
    struct loop_watch watch;
    uint64_t until_us;
    size_t dropped;
};

static void forget(struct leftover **link)
{
    struct leftover *linger = *link;
    int fd = linger->watch.fd;
    *link = linger->next;
    linger->server->lingering_count--;
    loop_forget(linger->server->loop, &linger->watch);
    close(fd);
    free(linger);
}

static void drop(void *context, uint32_t events)
{
    static char bytes[1 << 16];
    struct leftover *linger = context, **link = &linger->server->lingering;
    (void)events;
    ssize_t length = recv(linger->watch.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length > 0 && (linger->dropped += (size_t)length) < DROP_BYTES)
        return;
    while (*link != linger)
        link = &(*link)->next;
    forget(link);
}

void linger_begin(struct http_server *server, int fd)
{
    struct leftover *linger = calloc(1, sizeof *linger);
    int copy = linger ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (copy < 0) {
        free(linger);
        return;
    }
    *linger = (struct leftover){.next = server->lingering,
                                .server = server,
                                .watch = {.fd = -1, .ready = drop, .context = linger},
                                .until_us = clock_us() + DROP_US};
    shutdown(copy, SHUT_WR);
    if (loop_watch(server->loop, &linger->watch, copy, EPOLLIN | EPOLLRDHUP) < 0) {
        close(copy);
        free(linger);
        return;
    }
    server->lingering = linger;
    if (++server->lingering_count > LINGERING_MAX)
        linger_sweep(server, 0);
}

void linger_sweep(struct http_server *server, uint64_t now_us)
{
    struct leftover **link = &server->lingering;
    for (unsigned kept = 0; *link;)
        if (++kept > LINGERING_MAX || now_us > (*link)->until_us)
            forget(link);
        else
            link = &(*link)->next;
}

void linger_end(struct http_server *server)
{
    while (server->lingering)
        forget(&server->lingering);
}
