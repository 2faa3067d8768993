/* Where a server listens. */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include <cordon/error.h>
#include <stdbool.h>

struct address {
    int fd;         /* listening */
    bool local;     /* loopback, or a Unix socket */
    char text[256]; /* for people, without the scheme: "127.0.0.1:7700", "unix:/run/x" */
    char *path;     /* of a Unix socket that this process made; NULL otherwise */
};

/* `listen` as in http_options; a port of 0 takes any. */
int address_listen(const char *listen, struct address *address, cordon_error *err);
/* A socket that somebody else made. */
int address_take(int fd, struct address *address, cordon_error *err);
void address_close(struct address *address);

#endif
