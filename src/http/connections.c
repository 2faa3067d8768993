/* Owns the list of connections, and decides which of them have to go. libmicrohttpd owns their descriptors: here they
 * are only shut down, and it finds them closed. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/internal.h"

#define SECOND_US UINT64_C(1000000)
#define IDLE_US   (65 * SECOND_US) /* libmicrohttpd's own time comes first; a byte now and then starts that anew */
#define SWEEP_US  SECOND_US
/* When connections run short: so long may one be idle, or take for its request. */
#define SHORT_IDLE_US    SECOND_US
#define SHORT_REQUEST_US (5 * SECOND_US)

static unsigned hash(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    unsigned sum = 5381;
    for (size_t i = 0; i < length; i++)
        sum = sum * 33 + at[i];
    return sum % HTTP_PEERS;
}

/* One user of this machine, or one address elsewhere: of IPv6 the network, of which one caller has many addresses. */
static unsigned peer_of(struct MHD_Connection *from, int fd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *at = info ? info->client_addr : NULL;
    struct ucred who;
    socklen_t size = sizeof who;
    if (at && at->sa_family == AF_INET)
        return hash(&((const struct sockaddr_in *)(const void *)at)->sin_addr, 4);
    if (at && at->sa_family == AF_INET6)
        return hash(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr, 8);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? hash(&who.uid, sizeof who.uid) : 0;
}

static struct connection *connection_new(struct http_server *server, struct MHD_Connection *from)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *on = info ? calloc(1, sizeof *on) : NULL;
    if (!on)
        return NULL;
    *on = (struct connection){.next = server->connections,
                              .link = &server->connections,
                              .server = server,
                              .fd = info->connect_fd,
                              .peer = peer_of(from, info->connect_fd),
                              .since_us = clock_us()};
    if (on->next)
        on->next->link = &on->next;
    server->connections = on;
    server->count++;
    server->peers[on->peer]++;
    return on;
}

static void connection_free(struct connection *on)
{
    *on->link = on->next;
    if (on->next)
        on->next->link = on->link;
    on->server->count--;
    on->server->peers[on->peer]--;
    free(on);
}

static bool goes_before(const struct connection *a, const struct connection *b)
{
    unsigned of_a = a->server->peers[a->peer], of_b = b->server->peers[b->peer];
    return of_a > of_b || (of_a == of_b && a->since_us < b->since_us);
}

/* Of those without a call, the one that waits longest, of the caller who has most. */
static void evict_one(struct http_server *server)
{
    struct connection *first = NULL;
    for (struct connection *on = server->connections; on; on = on->next)
        if (!on->call && !on->dropped && (!first || goes_before(on, first)))
            first = on;
    if (!first)
        return;
    first->dropped = true;
    shutdown(first->fd, SHUT_RDWR);
}

void connections_notify(void *context, struct MHD_Connection *connection, void **slot,
                        enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = connection_new(server, connection);
        if (server->count > server->options.connections)
            evict_one(server);
    } else if (*slot) {
        const struct connection *on = *slot;
        if (on->unread)
            linger_begin(on->server, on->fd);
        connection_free(*slot);
        *slot = NULL;
    }
}

struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void *connections_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct connection *on = connection_of(connection);
    (void)context;
    (void)uri;
    if (on) {
        on->since_us = clock_us();
        on->requesting = true;
        on->unread = false;
    }
    return NULL;
}

/* libmicrohttpd may miss that the other end closed when that came together with the last bytes. */
static bool has_left(const struct connection *on)
{
    char byte;
    return !on->call && recv(on->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool is_slow(const struct connection *on, uint64_t now, uint64_t request_us, uint64_t idle_us)
{
    if (on->call && !on->reading)
        return false;
    if (has_left(on))
        return true;
    return now - on->since_us > (on->requesting ? request_us : idle_us);
}

static unsigned drop(struct http_server *server, uint64_t now, uint64_t request_us, uint64_t idle_us, unsigned most)
{
    unsigned dropped = 0;
    for (const struct connection *on = server->connections; on && dropped < most; on = on->next)
        if (is_slow(on, now, request_us, idle_us)) {
            shutdown(on->fd, SHUT_RDWR);
            dropped++;
        }
    return dropped;
}

/* The longest idle go first, as far as ten times the bound tells them apart. */
static void make_room(struct http_server *server, uint64_t now)
{
    unsigned most = server->options.connections, keep = most - most / 4;
    if (server->count <= most - most / 10)
        return;
    unsigned excess = server->count - keep;
    unsigned dropped = drop(server, now, server->options.request_us, 10 * SHORT_IDLE_US, excess);
    drop(server, now, SHORT_REQUEST_US, SHORT_IDLE_US, excess - dropped);
}

void connections_sweep(void *context)
{
    struct http_server *server = context;
    uint64_t now = clock_us();
    drop(server, now, server->options.request_us, IDLE_US, server->count);
    make_room(server, now);
    linger_sweep(server, now);
    bool crowded = server->count > server->options.connections / 2;
    loop_set_timer(server->loop, &server->sweep, now + (crowded ? SWEEP_US / 10 : SWEEP_US));
}
