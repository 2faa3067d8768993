/* Owns the loops round read, write, sendmsg and recvmsg. Used by library and warden; allocates nothing. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int fd_write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length) {
        ssize_t n = write(fd, at, length);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

ssize_t fd_read_all(int fd, void *bytes, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, (char *)bytes + used, size - used);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

#define PIECE 1024
#define PAGE  4096

int fd_open_beneath(int dir_fd, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

ssize_t fd_read_text_at(int dir_fd, const char *path, char *text, size_t size)
{
    auto_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    /* Kernel files give what fits into a page at once: only a longer text is worth asking for more. */
    ssize_t n = read(fd, text, size - 1);
    if (n > 0 && (n >= PIECE || size > PAGE) && (size_t)n < size - 1) {
        ssize_t more = fd_read_all(fd, text + n, size - 1 - (size_t)n);
        n = more < 0 ? -1 : n + more;
    } else if (n < 0 && errno == EINTR)
        n = fd_read_all(fd, text, size - 1);
    if (n >= 0)
        text[n] = '\0';
    return n;
}

int fd_write_text_at(int dir_fd, const char *path, const char *text)
{
    auto_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = strlen(text);
    ssize_t n = write(fd, text, length);
    if (n >= 0 && (size_t)n != length) {
        errno = EIO;
        return -1;
    }
    return n < 0 ? -1 : 0;
}

union control_space {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * FD_MESSAGE_MAX)];
};

static int send_message(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count, int flags)
{
    if (fd_count > FD_MESSAGE_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    struct iovec iov = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    union control_space control;
    if (fd_count) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    ssize_t n;
    do
        n = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

int fd_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count)
{
    return send_message(socket, bytes, length, fds, fd_count, 0);
}

int fd_send_now(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count)
{
    return send_message(socket, bytes, length, fds, fd_count, MSG_DONTWAIT);
}

static ssize_t receive_message(int socket, void *bytes, size_t size, int *fds, size_t fd_max, size_t *fd_count,
                               int flags)
{
    struct iovec iov = {.iov_base = bytes, .iov_len = size};
    union control_space control;
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    bool reset = false;
    /* A peer that left without reading everything leaves an error in front of what it sent last. */
    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset && (reset = true))));
    *fd_count = 0;
    if (n < 0)
        return -1;
    bool cut = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
            if (*fd_count < fd_max)
                fds[(*fd_count)++] = fd;
            else {
                close(fd);
                cut = true;
            }
        }
    }
    if (cut) {
        while (*fd_count)
            close(fds[--*fd_count]);
        errno = EMSGSIZE;
        return -1;
    }
    return n;
}

ssize_t fd_receive(int socket, void *bytes, size_t size, int *fds, size_t fd_max, size_t *fd_count)
{
    return receive_message(socket, bytes, size, fds, fd_max, fd_count, 0);
}

ssize_t fd_receive_now(int socket, void *bytes, size_t size, int *fds, size_t fd_max, size_t *fd_count)
{
    return receive_message(socket, bytes, size, fds, fd_max, fd_count, MSG_DONTWAIT);
}

int fd_set_nonblocking(int fd, bool nonblocking)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -1;
    return fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
