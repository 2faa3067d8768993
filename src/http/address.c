/* Makes listening sockets from what people write. */
#include "http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define STEP "listen"

static bool is_loopback(const struct sockaddr *at)
{
    if (at->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr) >> 24 == 127;
    if (at->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr);
    return at->sa_family == AF_UNIX;
}

int address_take(int fd, struct address *address, cordon_error *err)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    char host[INET6_ADDRSTRLEN + 8], port[8];
    const struct sockaddr *any = (const struct sockaddr *)&at;
    *address = (struct address){.fd = fd};
    if (getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return error_sys(err, errno, STEP, "descriptor %d is no socket", fd);
    address->local = is_loopback(any);
    if (at.ss_family == AF_UNIX) {
        snprintf(address->text, sizeof address->text, "unix:%s",
                 ((const struct sockaddr_un *)(const void *)&at)->sun_path);
        return 0;
    }
    if (getnameinfo(any, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return error_set(err, CORDON_ESYSTEM, STEP, "descriptor %d has no address to listen at", fd);
    snprintf(address->text, sizeof address->text, at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return 0;
}

/* One that answers is somebody's; one that nobody answers at was left by a daemon that died. */
static int make_way(const struct sockaddr_un *at, cordon_error *err)
{
    struct stat st;
    if (lstat(at->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : error_sys(err, errno, STEP, "cannot look at %s", at->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, CORDON_EINVAL, STEP, "%s is there already and is no socket", at->sun_path);
    auto_close int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe >= 0 && connect(probe, (const struct sockaddr *)at, sizeof *at) == 0)
        return error_set(err, CORDON_ESTATE, STEP, "somebody else serves at %s", at->sun_path);
    return unlink(at->sun_path) < 0 ? error_sys(err, errno, STEP, "cannot replace %s", at->sun_path) : 0;
}

static int listen_unix(const char *path, struct address *address, cordon_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path || *path != '/')
        return error_set(err, CORDON_EINVAL, STEP, "unix:%s: expected an absolute path of at most %zu bytes", path,
                         sizeof at.sun_path - 1);
    memcpy(at.sun_path, path, strlen(path) + 1);
    int code = make_way(&at, err);
    if (code < 0)
        return code;
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0117); /* owner and group */
    int bound = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&at, sizeof at);
    umask(before);
    if (bound < 0 || listen(fd, SOMAXCONN) < 0)
        return error_sys(err, errno, STEP, "cannot listen at unix:%s", path);
    code = address_take(take_fd(&fd), address, err);
    address->path = code == 0 ? strdup(path) : NULL;
    return code;
}

static int listen_tcp(const char *text, struct address *address, cordon_error *err)
{
    char host[128];
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof host || !colon[1])
        return error_set(err, CORDON_EINVAL, STEP, "'%s' is no address; expected HOST:PORT, [V6]:PORT or unix:PATH",
                         text);
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    char *name = host;
    if (*name == '[' && name[strlen(name) - 1] == ']') {
        name[strlen(name) - 1] = '\0';
        name++;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int failed = getaddrinfo(name, colon + 1, &hints, &found);
    if (failed)
        return error_set(err, CORDON_EINVAL, STEP, "'%s' is no address: %s", text, gai_strerror(failed));
    auto_close int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, bad = fd < 0;
    if (!bad)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bad = bad || bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0;
    freeaddrinfo(found);
    if (!bad)
        return address_take(take_fd(&fd), address, err);
    error_sys(err, errno, STEP, "cannot listen at %s", text);
    return err && err->sys_errno == EADDRINUSE
               ? error_hint(err, "another program listens there; choose another address with --listen or "
                                 "CORDON_LISTEN")
               : CORDON_ESYSTEM;
}

int address_listen(const char *listen, struct address *address, cordon_error *err)
{
    *address = (struct address){.fd = -1};
    return strncmp(listen, "unix:", 5) == 0 ? listen_unix(listen + 5, address, err) : listen_tcp(listen, address, err);
}

void address_close(struct address *address)
{
    if (address->path)
        unlink(address->path);
    free(address->path);
    address->path = NULL;
    cleanup_close(&address->fd);
    address->fd = -1;
}
