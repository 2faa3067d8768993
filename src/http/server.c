/* Owns libmicrohttpd's daemon and the life of connections and calls. libmicrohttpd waits in an epoll of its own, which
 * is nested in the loop's. It does not watch a connection that waits for its answer, so a copy of that descriptor is
 * watched here for the client's leaving. */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/address.h"

#define SECOND_US UINT64_C(1000000)
/* From the first byte that could be sent to the end of a request: a client that takes longer is not one. */
#define REQUEST_US   (30 * SECOND_US)
#define IDLE_S       60
#define SWEEP_US     SECOND_US
#define MEMORY_LIMIT (64 << 10) /* of a connection, which bounds its headers */

struct connection {
    struct connection *next, **link;
    struct http_server *server;
    struct http_call *call; /* under way */
    int fd;                 /* libmicrohttpd's; borrowed */
    uint64_t since_us;      /* when it was made, or its last call ended */
    bool reading;           /* headers are there, the body is not */
};

enum answer { ANSWER_NONE, ANSWER_WHOLE, ANSWER_STREAM };

struct http_call {
    struct http_server *server;
    struct connection *on;
    struct MHD_Connection *connection;
    char *method, *path;
    struct buf body;
    bool too_large, accepted, handled;
    enum answer answer;
    int status;
    struct MHD_Response *response; /* an answer that could not be queued yet */
    struct header {
        char name[32], value[256];
    } headers[8];
    unsigned header_count;
    bool in_callback; /* libmicrohttpd called us about it: answers can be queued, and it can be suspended */
    bool suspended;
    struct buf parts; /* of a stream, not sent yet */
    size_t sent;      /* of those */
    bool ended;
    struct loop_watch gone;
    void (*left)(void *context);
    void *left_context;
    void *data;
    uint64_t began_us;
};

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
};

/* Suspending and leaving */

static void tell_left(struct http_call *call)
{
    void (*left)(void *) = call->left;
    call->left = NULL;
    if (left)
        left(call->left_context);
}

static void resume(struct http_call *call)
{
    if (!call->suspended)
        return;
    call->suspended = false;
    MHD_resume_connection(call->connection);
}

static void stop_watching(struct http_call *call)
{
    int fd = call->gone.fd;
    loop_forget(call->server->loop, &call->gone);
    if (fd >= 0)
        close(fd);
}

static void on_gone(void *context, uint32_t events)
{
    struct http_call *call = context;
    (void)events;
    stop_watching(call);
    tell_left(call);
    shutdown(call->on->fd, SHUT_RDWR);
    resume(call); /* libmicrohttpd finds it closed, and ends the call */
}

static void watch_leaving(struct http_call *call)
{
    if (call->gone.fd >= 0)
        return;
    int fd = fcntl(call->on->fd, F_DUPFD_CLOEXEC, 3);
    call->gone = (struct loop_watch){.fd = -1, .ready = on_gone, .context = call};
    if (fd >= 0 && loop_watch(call->server->loop, &call->gone, fd, EPOLLRDHUP | EPOLLHUP | EPOLLERR) < 0) {
        call->gone.fd = -1;
        close(fd);
    }
}

static void suspend(struct http_call *call)
{
    call->suspended = true;
    MHD_suspend_connection(call->connection);
}

void http_wait(struct http_call *call, void (*left)(void *context), void *context)
{
    call->left = left;
    call->left_context = context;
    watch_leaving(call);
}

/* Answers */

void http_add_header(struct http_call *call, const char *name, const char *value)
{
    if (call->header_count == ARRAY_LEN(call->headers))
        return;
    struct header *header = &call->headers[call->header_count++];
    snprintf(header->name, sizeof header->name, "%s", name);
    snprintf(header->value, sizeof header->value, "%s", value);
}

static void queue(struct http_call *call)
{
    struct MHD_Response *response = call->response;
    call->response = NULL;
    for (unsigned i = 0; i < call->header_count; i++)
        MHD_add_response_header(response, call->headers[i].name, call->headers[i].value);
    MHD_queue_response(call->connection, (unsigned)call->status, response);
    MHD_destroy_response(response);
}

static void send_answer(struct http_call *call, struct MHD_Response *response, int status, const char *type)
{
    call->response = response;
    call->status = status;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (call->in_callback)
        queue(call);
    else
        resume(call); /* libmicrohttpd calls once more, and it is queued then */
}

void http_answer(struct http_call *call, int status, const char *type, const void *body, size_t length)
{
    if (call->answer != ANSWER_NONE)
        return;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, length ? (void *)body : (void *)"", MHD_RESPMEM_MUST_COPY);
    if (!response) {
        shutdown(call->on->fd, SHUT_RDWR);
        resume(call);
        return;
    }
    call->answer = ANSWER_WHOLE;
    call->left = NULL;
    stop_watching(call);
    send_answer(call, response, status, type);
}

static ssize_t read_stream(void *context, uint64_t position, char *bytes, size_t most)
{
    struct http_call *call = context;
    (void)position;
    size_t ready = call->parts.length - call->sent;
    if (!ready && call->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!ready) {
        suspend(call);
        return 0;
    }
    size_t length = ready < most ? ready : most;
    memcpy(bytes, call->parts.data + call->sent, length);
    call->sent += length;
    if (call->sent == call->parts.length)
        call->sent = call->parts.length = 0;
    return (ssize_t)length;
}

void http_stream(struct http_call *call, int status, const char *type, void (*left)(void *context), void *context)
{
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, call, NULL);
    if (!response || call->answer != ANSWER_NONE)
        return;
    call->answer = ANSWER_STREAM;
    call->left = left;
    call->left_context = context;
    watch_leaving(call);
    MHD_add_response_header(response, "X-Accel-Buffering", "no");
    send_answer(call, response, status, type);
}

bool http_stream_write(struct http_call *call, const void *bytes, size_t length)
{
    if (call->answer != ANSWER_STREAM || call->ended)
        return true;
    bool keeps_up = call->parts.length - call->sent + length <= HTTP_STREAM_MAX;
    if (keeps_up)
        buf_append(&call->parts, bytes, length);
    else {
        call->ended = true;
        shutdown(call->on->fd, SHUT_RDWR);
        tell_left(call);
    }
    resume(call);
    return keeps_up;
}

void http_stream_end(struct http_call *call)
{
    if (call->ended)
        return;
    call->ended = true;
    call->left = NULL;
    resume(call);
}

/* What libmicrohttpd calls */

static struct http_call *call_new(struct http_server *server, struct MHD_Connection *connection, struct connection *on,
                                  const char *method, const char *path)
{
    struct http_call *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    call->server = server;
    call->connection = connection;
    call->on = on;
    call->method = strdup(method);
    call->path = strdup(path);
    call->began_us = clock_us();
    call->gone.fd = -1;
    on->call = call;
    on->reading = true;
    return call;
}

/* A body that is announced as too long is refused before a byte of it is read. */
static bool announces_too_much(const struct http_call *call)
{
    const char *text = http_header(call, "Content-Length");
    return text && (strlen(text) > 15 || strtoull(text, NULL, 10) > call->server->options.body_max);
}

static void take_body(struct http_call *call, const char *bytes, size_t length)
{
    if (call->body.length + length > call->server->options.body_max)
        call->too_large = true;
    if (!call->too_large)
        buf_append(&call->body, bytes, length);
}

static void refuse_length(struct http_call *call)
{
    char text[256];
    int length =
        snprintf(text, sizeof text,
                 "{\"type\":\"about:blank\",\"title\":\"Content Too Large\",\"status\":413,\"code\":\"too_large\","
                 "\"detail\":\"the body is larger than %zu bytes\"}",
                 call->server->options.body_max);
    http_add_header(call, "Connection", "close");
    http_answer(call, 413, "application/problem+json", text, (size_t)length);
}

static void go_on(struct http_call *call, const char *upload, size_t *upload_size)
{
    const struct http_options *options = &call->server->options;
    if (!call->accepted) {
        call->accepted = true;
        if (announces_too_much(call))
            refuse_length(call);
        else
            options->accept(options->context, call);
        return;
    }
    if (*upload_size) {
        take_body(call, upload, *upload_size);
        *upload_size = 0;
        return;
    }
    if (call->handled || call->answer != ANSWER_NONE)
        return;
    call->handled = true;
    call->on->reading = false;
    if (call->too_large || call->body.failed)
        refuse_length(call);
    else
        options->handle(options->context, call);
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                 const char *version, const char *upload, size_t *upload_size, void **slot)
{
    struct http_server *server = context;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *on = info ? info->socket_context : NULL;
    struct http_call *call = *slot;
    (void)version;
    if (!call && on)
        call = *slot = call_new(server, connection, on, method, url);
    if (!call || !call->method || !call->path)
        return MHD_NO;
    call->in_callback = true;
    if (call->response)
        queue(call);
    else
        go_on(call, upload, upload_size);
    call->in_callback = false;
    if (call->handled && call->answer == ANSWER_NONE)
        suspend(call);
    return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode how)
{
    struct http_server *server = context;
    struct http_call *call = *slot;
    (void)connection;
    (void)how;
    if (!call)
        return;
    *slot = NULL;
    stop_watching(call);
    tell_left(call);
    server->options.done(server->options.context, call);
    call->on->call = NULL;
    call->on->reading = false;
    call->on->since_us = clock_us();
    if (call->response)
        MHD_destroy_response(call->response);
    buf_free(&call->body);
    buf_free(&call->parts);
    free(call->method);
    free(call->path);
    free(call);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    struct connection *on = *slot;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        on = calloc(1, sizeof *on);
        if (!on || !info) {
            free(on);
            return;
        }
        *on = (struct connection){.next = server->connections,
                                  .link = &server->connections,
                                  .server = server,
                                  .fd = info->connect_fd,
                                  .since_us = clock_us()};
        if (on->next)
            on->next->link = &on->next;
        server->connections = on;
        server->count++;
        *slot = on;
    } else if (on) {
        *on->link = on->next;
        if (on->next)
            on->next->link = on->link;
        server->count--;
        free(on);
        *slot = NULL;
    }
}

/* Percent signs are resolved but for those that would end or spoil a string: such a path is nobody's. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    char *to = text;
    for (const char *from = text; *from;) {
        unsigned value = 0;
        int used = 0;
        if (*from == '%' && sscanf(from + 1, "%2x%n", &value, &used) == 1 && used == 2 && value >= 0x20 &&
            value != '/' && value != 0x7f) {
            *to++ = (char)value;
            from += 3;
        } else
            *to++ = *from++;
    }
    *to = '\0';
    return (size_t)(to - text);
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

/* Clients that send a byte now and then, and, when connections run short, those that say nothing. */
static void sweep(void *context)
{
    struct http_server *server = context;
    uint64_t now = clock_us();
    struct connection *oldest = NULL;
    for (struct connection *on = server->connections; on; on = on->next) {
        uint64_t since = on->call ? on->call->began_us : on->since_us;
        bool slow = now - since > (on->call ? REQUEST_US : (IDLE_S + 5) * SECOND_US);
        if ((!on->call || on->reading) && slow)
            shutdown(on->fd, SHUT_RDWR);
        if (!on->call && (!oldest || on->since_us < oldest->since_us))
            oldest = on;
    }
    if (server->count > server->options.connections * 9 / 10 && oldest && now - oldest->since_us > SECOND_US)
        shutdown(oldest->fd, SHUT_RDWR);
    loop_set_timer(server->loop, &server->sweep,
                   now + (server->count > server->options.connections / 2 ? SWEEP_US / 20 : SWEEP_US));
}

static void say_nothing(void *context, const char *format, va_list args)
{
    (void)context;
    (void)format;
    (void)args; /* what clients do wrong is no event of ours */
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
        flags, 0, NULL, NULL, on_access, server, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
        MHD_OPTION_LISTEN_SOCKET, server->address.fd, MHD_OPTION_CONNECTION_LIMIT, options->connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_LIMIT,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
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
    server->sweep = (struct loop_timer){.expired = sweep, .context = server};
    loop_set_timer(loop, &server->sweep, clock_us() + SWEEP_US);
    loop_set_hook(loop, before_sleep, server);
    *out = server;
    return 0;
}

void http_server_quiesce(struct http_server *server)
{
    int fd = server->daemon ? MHD_quiesce_daemon(server->daemon) : -1;
    if (fd >= 0)
        address_close(&server->address);
}

void http_server_close(struct http_server *server)
{
    if (!server)
        return;
    loop_set_hook(server->loop, NULL, NULL);
    loop_drop_timer(server->loop, &server->sweep);
    for (struct connection *on = server->connections; on; on = on->next)
        if (on->call) {
            shutdown(on->fd, SHUT_RDWR);
            resume(on->call);
        }
    loop_forget(server->loop, &server->watch);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
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

bool http_server_is_local(const struct http_server *server)
{
    return server->address.local;
}

/* What was asked */

const char *http_method(const struct http_call *call)
{
    return call->method;
}

const char *http_path(const struct http_call *call)
{
    return call->path;
}

const char *http_header(const struct http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

const char *http_query(const struct http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_body(const struct http_call *call, size_t *length)
{
    *length = call->body.length;
    return buf_text(&call->body);
}

uint64_t http_began_us(const struct http_call *call)
{
    return call->began_us;
}

int http_status(const struct http_call *call)
{
    return call->status;
}

void http_set_data(struct http_call *call, void *data)
{
    call->data = data;
}

void *http_data(const struct http_call *call)
{
    return call->data;
}
