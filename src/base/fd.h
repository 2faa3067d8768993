/* Descriptors: whole reads and writes, and messages that carry descriptors. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The most descriptors one message may carry. */
#define FD_MESSAGE_MAX 64

/* 0, or -1 with errno. */
int fd_write_all(int fd, const void *bytes, size_t length);
/* Reads at most `size` bytes until end of file; the count, or -1 with errno. */
ssize_t fd_read_all(int fd, void *bytes, size_t size);
/* Opens a name that others may have made: never through a link, out of the directory or into another file system. */
int fd_open_beneath(int dir_fd, const char *path, int flags);
/* The file's text, NUL-terminated, cut at size - 1; its length or -1 with errno. */
ssize_t fd_read_text_at(int dir_fd, const char *path, char *text, size_t size);
/* Writes the text to an existing file in one write, as kernel files want it; 0 or -1 with errno. */
int fd_write_text_at(int dir_fd, const char *path, const char *text);

/* One SEQPACKET message with descriptors. Send: 0 or -1 with errno. Receive: length, 0 at end of file, -1 with errno;
 * received descriptors are CLOEXEC; a message cut short (data or descriptors) is EMSGSIZE and leaves nothing open. */
int fd_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count);
ssize_t fd_receive(int socket, void *bytes, size_t size, int *fds, size_t fd_max, size_t *fd_count);
/* The same without waiting: EAGAIN. */
int fd_send_now(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count);
ssize_t fd_receive_now(int socket, void *bytes, size_t size, int *fds, size_t fd_max, size_t *fd_count);

int fd_set_nonblocking(int fd, bool nonblocking);

#endif
