/* What server.c, connections.c and call.c know of each other. */
#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

#include <microhttpd.h>

#include "base/buf.h"
#include "http/address.h"
#include "http/server.h"

/* Callers are told apart by their addresses, as far as this number of hashes does. */
#define HTTP_PEERS 1024
/* Connections beyond the bound: libmicrohttpd accepts none when all are taken, and then nothing can be decided. */
#define HTTP_RESERVE(connections) (8 + (connections) / 8)

struct connection {
    struct connection *next, **link;
    struct http_server *server;
    struct http_call *call; /* under way */
    int fd;                 /* libmicrohttpd's; borrowed */
    uint64_t since_us;      /* when it was made, its request began, or its last call ended */
    unsigned peer;          /* whose it is */
    bool dropped;           /* it is about to be closed */
    bool requesting;        /* a request line has come */
    bool reading;           /* headers are there, the body is not */
    bool unread;            /* its last request was answered although not all of it was read */
};

struct leftover;

struct http_server {
    struct loop *loop;
    struct http_options options;
    struct MHD_Daemon *daemon;
    struct address address;
    char text[300];
    struct loop_watch watch;
    struct loop_timer sweep;
    struct connection *connections;
    unsigned count;
    unsigned peers[HTTP_PEERS]; /* connections of each */
    struct leftover *lingering;
    unsigned lingering_count;
};

/* connections.c */
void connections_notify(void *context, struct MHD_Connection *connection, void **slot,
                        enum MHD_ConnectionNotificationCode what);
/* The request line is there. Always NULL: there is no call yet. */
void *connections_begin(void *context, const char *uri, struct MHD_Connection *connection);
struct connection *connection_of(struct MHD_Connection *connection);
/* Ends clients that take too long, and, when connections run short, those that do nothing. */
void connections_sweep(void *context);

/* linger.c: libmicrohttpd is about to close this socket, whose client may still be sending. */
void linger_begin(struct http_server *server, int fd);
/* Ends those whose time is over. */
void linger_sweep(struct http_server *server, uint64_t now_us);
void linger_end(struct http_server *server);

/* refusal.c: queues an answer of the server's. */
enum MHD_Result refusal_queue_answer(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response);

/* call.c: what libmicrohttpd calls */
enum MHD_Result call_access(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                            const char *version, const char *upload, size_t *upload_size, void **slot);
void call_completed(void *context, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode how);
/* Its client is told nothing more. */
void call_abort(struct http_call *call);
/* Its request is whole, and its answer is not out. */
bool call_is_open(const struct http_call *call);

#endif
