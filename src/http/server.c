/* Owns libmicrohttpd's daemon, whose epoll is nested in the loop's. */
#include "http/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/internal.h"
#include "http/url.h"

#define SWEEP_US     UINT64_C(1000000)
#define IDLE_S       60
#define MEMORY_LIMIT (64 << 10) /* of a connection, which bounds its headers */
/* A connection's descriptor, and the copy that is watched; and what runs and the store have open. */
#define FILES_EACH  2
#define FILES_OTHER 1024

static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return url_unescape(text);
}

/* The loop */

static int before_sleep(void *context)
{
    struct http_server *server = context;
    MHD_UNSIGNED_LONG_LONG left;
    MHD_run(server->daemon);
    if (MHD_get_timeout(server->daemon, &left) != MHD_YES)
        return -1;
    return left > 1000 ? 1000 : (int)left;
}

static void on_ready(void *context, uint32_t events)
{
    (void)context;
    (void)events; /* before_sleep() runs it */
}

static void say_nothing(void *context, const char *format, va_list args)
{
    (void)context;
    (void)format;
    (void)args; /* what clients do wrong is no event of ours */
}

/* A daemon is often started with a bound that fits a shell. Where it cannot be raised, there are fewer connections. */
static void make_files(struct http_options *options)
{
    struct rlimit limit;
    rlim_t connections = (rlim_t)options->connections + HTTP_RESERVE(options->connections);
    rlim_t wanted = connections * FILES_EACH + FILES_OTHER;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted)
        options->connections = (unsigned)(limit.rlim_cur / 2 / FILES_EACH);
}

static int start(struct http_server *server, cordon_error *err)
{
    const struct http_options *options = &server->options;
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (options->tls_cert ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, options->tls_cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, options->tls_key},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, call_access, server, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
        MHD_OPTION_LISTEN_SOCKET, server->address.fd, MHD_OPTION_CONNECTION_LIMIT,
        options->connections + HTTP_RESERVE(options->connections), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_LIMIT, MHD_OPTION_NOTIFY_COMPLETED, call_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, connections_notify, server, MHD_OPTION_URI_LOG_CALLBACK, connections_begin,
        server, MHD_OPTION_UNESCAPE_CALLBACK, unescape, server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
        options->tls_cert ? tls : none, MHD_OPTION_END);
    if (!server->daemon && options->tls_cert)
        return error_set(err, CORDON_EINVAL, "tls", "the certificate and its key cannot be used");
    if (!server->daemon)
        return error_set(err, CORDON_ESYSTEM, "listen", "the HTTP server cannot be started");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->watch = (struct loop_watch){.ready = on_ready, .context = server};
    if (!info || loop_watch(server->loop, &server->watch, info->epoll_fd, EPOLLIN) < 0)
        return error_sys(err, errno, "listen", "the HTTP server cannot be watched");
    return 0;
}

int http_server_open(struct loop *loop, const struct http_options *options, struct http_server **out, cordon_error *err)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_nomem(err);
    server->loop = loop;
    server->options = *options;
    server->watch.fd = -1;
    make_files(&server->options);
    int code = options->listen_fd >= 0 ? address_take(options->listen_fd, &server->address, err)
                                       : address_listen(options->listen, &server->address, err);
    if (code == 0)
        code = start(server, err);
    if (code < 0) {
        http_server_close(server);
        return code;
    }
    bool is_unix = strncmp(server->address.text, "unix:", 5) == 0;
    snprintf(server->text, sizeof server->text, "%s%s",
             is_unix             ? ""
             : options->tls_cert ? "https://"
                                 : "http://",
             server->address.text);
    server->sweep = (struct loop_timer){.expired = connections_sweep, .context = server};
    loop_set_timer(loop, &server->sweep, clock_us() + SWEEP_US);
    loop_set_hook(loop, before_sleep, server);
    *out = server;
    return 0;
}

void http_server_close(struct http_server *server)
{
    if (!server)
        return;
    loop_set_hook(server->loop, NULL, NULL);
    loop_drop_timer(server->loop, &server->sweep);
    for (struct connection *on = server->connections; on; on = on->next)
        if (on->call)
            call_abort(on->call);
    loop_forget(server->loop, &server->watch);
    if (server->daemon) {
        MHD_quiesce_daemon(server->daemon); /* or it would close our socket, and we somebody else's of that number */
        MHD_stop_daemon(server->daemon);
    }
    linger_end(server);
    address_close(&server->address);
    free(server);
}

const char *http_server_address(const struct http_server *server)
{
    return server->text;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->count;
}

unsigned http_server_calls(const struct http_server *server)
{
    unsigned count = 0;
    for (const struct connection *on = server->connections; on; on = on->next)
        count += on->call && call_is_open(on->call);
    return count;
}

bool http_server_is_local(const struct http_server *server)
{
    return server->address.local;
}
