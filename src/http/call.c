/* Owns the life of a call: its body, its answer, and its client's leaving. libmicrohttpd does not watch a connection
 * that waits for its answer, so a copy of that descriptor is watched here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/internal.h"
#include "http/problem.h"

enum answer { ANSWER_NONE, ANSWER_WHOLE, ANSWER_STREAM };

struct http_call {
    struct http_server *server;
    struct connection *on;
    struct MHD_Connection *connection;
    char *method, *path;
    struct buf body;
    size_t discarded; /* that came after it was found too large */
    bool too_large, no_room, accepted, handled, gone;
    enum answer answer;
    int status;
    struct MHD_Response *response; /* an answer that could not be queued yet */
    struct header {
        char name[32], value[256];
    } headers[12];
    unsigned header_count;
    bool in_callback; /* libmicrohttpd called us about it: answers can be queued, and it can be suspended */
    bool suspended;
    struct http_stream stream;
    struct buf part; /* of a stream, not sent yet */
    size_t sent;     /* of that */
    bool ended;
    struct loop_watch leaving;
    void (*left)(void *context);
    void *left_context;
    void *data;
    uint64_t began_us;
};

/* Suspending and leaving */

static void tell_left(struct http_call *call)
{
    void (*left)(void *) = call->left, (*closed)(void *) = call->stream.closed;
    call->left = NULL;
    call->stream.closed = NULL;
    if (left)
        left(call->left_context);
    if (closed)
        closed(call->stream.context);
}

static void resume(struct http_call *call)
{
    if (!call->suspended)
        return;
    call->suspended = false;
    MHD_resume_connection(call->connection);
}

static void suspend(struct http_call *call)
{
    call->suspended = true;
    MHD_suspend_connection(call->connection);
}

static void stop_watching(struct http_call *call)
{
    int fd = call->leaving.fd;
    loop_forget(call->server->loop, &call->leaving);
    if (fd >= 0)
        close(fd);
}

/* libmicrohttpd finds it closed, and ends the call. */
void call_abort(struct http_call *call)
{
    call->gone = true;
    shutdown(call->on->fd, SHUT_RDWR);
    resume(call);
}

static void on_leaving(void *context, uint32_t events)
{
    struct http_call *call = context;
    (void)events;
    stop_watching(call);
    tell_left(call);
    call_abort(call);
}

static void watch_leaving(struct http_call *call)
{
    if (call->leaving.fd >= 0)
        return;
    int fd = fcntl(call->on->fd, F_DUPFD_CLOEXEC, 3);
    call->leaving = (struct loop_watch){.fd = -1, .ready = on_leaving, .context = call};
    if (fd >= 0 && loop_watch(call->server->loop, &call->leaving, fd, EPOLLRDHUP | EPOLLHUP | EPOLLERR) < 0) {
        call->leaving.fd = -1;
        close(fd);
    }
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
    for (unsigned i = 0; i < call->header_count; i++)
        if (strcasecmp(call->headers[i].name, name) == 0)
            return;
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
    if (refusal_queue_answer(call->connection, (unsigned)call->status, response) != MHD_YES)
        call_abort(call);
    MHD_destroy_response(response);
}

static void send_answer(struct http_call *call, struct MHD_Response *response, int status, const char *type)
{
    call->response = response;
    call->status = status;
    if (type)
        MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (call->in_callback)
        queue(call);
    else
        resume(call); /* libmicrohttpd calls once more, and it is queued then */
}

/* False when the call has an answer already, or can have none. Takes the response. */
static bool answer(struct http_call *call, struct MHD_Response *response, int status, const char *type)
{
    call->left = NULL;
    stop_watching(call);
    if (!response) {
        call_abort(call);
        return false;
    }
    call->answer = ANSWER_WHOLE;
    send_answer(call, response, status, type);
    return true;
}

void http_answer(struct http_call *call, int status, const char *type, const void *body, size_t length)
{
    if (call->answer == ANSWER_NONE)
        answer(call, MHD_create_response_from_buffer(length, length ? (void *)body : (void *)"", MHD_RESPMEM_MUST_COPY),
               status, type);
}

static void unref_text(void *text)
{
    http_text_unref(text);
}

void http_answer_text(struct http_call *call, int status, const char *type, struct http_text *body)
{
    if (call->answer != ANSWER_NONE)
        return;
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback_cls(body->length, body->bytes, unref_text, body);
    if (response)
        http_text_ref(body);
    answer(call, response, status, type);
}

/* Streams */

static void fill_part(struct http_call *call)
{
    if (call->sent < call->part.length || call->ended)
        return;
    call->part.length = call->sent = 0;
    call->ended = call->stream.next(call->stream.context, &call->part) == HTTP_PART_LAST;
}

static ssize_t read_stream(void *context, uint64_t position, char *bytes, size_t most)
{
    struct http_call *call = context;
    (void)position;
    if (call->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    fill_part(call);
    size_t ready = call->part.length - call->sent, length = ready < most ? ready : most;
    if (call->part.failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!ready && call->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!ready) {
        suspend(call);
        return 0;
    }
    memcpy(bytes, call->part.data + call->sent, length);
    call->sent += length;
    return (ssize_t)length;
}

void http_stream(struct http_call *call, int status, const char *type, const struct http_stream *stream)
{
    struct MHD_Response *response =
        call->answer == ANSWER_NONE
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, call, NULL)
            : NULL;
    call->stream = *stream;
    call->left = NULL;
    if (!response) {
        tell_left(call);
        call_abort(call);
        return;
    }
    call->answer = ANSWER_STREAM;
    watch_leaving(call);
    MHD_add_response_header(response, "X-Accel-Buffering", "no");
    send_answer(call, response, status, type);
}

void http_stream_wake(struct http_call *call)
{
    if (call->answer == ANSWER_STREAM && !call->gone && !call->response)
        resume(call);
}

/* Requests */

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
    call->leaving.fd = -1;
    on->call = call;
    on->reading = true;
    return call;
}

static bool announces_too_much(const struct http_call *call)
{
    const char *text = http_header(call, "Content-Length");
    return text && (strlen(text) > 15 || strtoull(text, NULL, 10) > call->server->options.body_max);
}

static bool has_body(const struct http_call *call)
{
    const char *length = http_header(call, "Content-Length");
    return http_header(call, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static void forget_body(struct http_call *call)
{
    const struct http_options *options = &call->server->options;
    if (call->body.length)
        options->room(options->context, call, 0);
    buf_free(&call->body);
    call->body = (struct buf){0};
}

/* libmicrohttpd takes no answer in the middle of a body, so one that has no announced end is read on for a while. False
 * when that has lasted long enough. */
static bool discard(struct http_call *call, size_t length)
{
    forget_body(call);
    call->discarded += length;
    return call->discarded <= call->server->options.body_max;
}

static bool take_body(struct http_call *call, const char *bytes, size_t length)
{
    const struct http_options *options = &call->server->options;
    call->too_large |= call->body.length + length > options->body_max;
    if (!call->too_large && !call->no_room)
        call->no_room = !options->room(options->context, call, call->body.length + length) || call->body.failed;
    if (call->too_large || call->no_room)
        return discard(call, length);
    buf_append(&call->body, bytes, length);
    return true;
}

static void refuse_length(struct http_call *call)
{
    http_add_header(call, "Connection", "close");
    problem_answer(call, 413, "too_large", "the body is larger than %zu bytes", call->server->options.body_max);
}

struct header_counts {
    unsigned host, length, encoding, origin;
    unsigned blank; /* names with a blank before their colon, which some take for the name without it */
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct header_counts *counts = context;
    size_t length = strlen(name);
    (void)kind;
    (void)value;
    counts->host += strcasecmp(name, "Host") == 0;
    counts->length += strcasecmp(name, "Content-Length") == 0;
    counts->encoding += strcasecmp(name, "Transfer-Encoding") == 0;
    counts->origin += strcasecmp(name, "Origin") == 0;
    counts->blank += length && strchr(" \t", name[length - 1]);
    return MHD_YES;
}

/* What a proxy before us may have read in another way than we do: where the body ends, whom it is for, or which page
 * it comes from. NULL when there is nothing of that. */
static const char *ambiguity(const struct http_call *call)
{
    struct header_counts counts = {0};
    MHD_get_connection_values(call->connection, MHD_HEADER_KIND, count_header, &counts);
    if (counts.host > 1 || counts.length + counts.encoding > 1 || counts.origin > 1)
        return "Host, Origin, or the length of the body, is given more than once";
    return counts.blank ? "a header has a blank between its name and the colon" : NULL;
}

static bool has_unknown_encoding(const struct http_call *call)
{
    const char *encoding = http_header(call, "Transfer-Encoding");
    return encoding && strcasecmp(encoding, "chunked") != 0;
}

/* A body that is announced as too long is refused before a byte of it is read. */
static void begin(struct http_call *call)
{
    const struct http_options *options = &call->server->options;
    call->accepted = true;
    const char *ambiguous = ambiguity(call);
    if (ambiguous) {
        http_add_header(call, "Connection", "close");
        problem_answer(call, 400, "bad_request", "%s", ambiguous);
        call->on->unread = true;
        return;
    }
    if (has_unknown_encoding(call)) {
        http_add_header(call, "Connection", "close");
        problem_answer(
            call, 501, "unsupported_encoding",
            "the only Transfer-Encoding that is known here is chunked, so nobody can tell where the body ends");
        call->on->unread = true;
        return;
    }
    options->accept(options->context, call);
    if (call->answer == ANSWER_NONE && announces_too_much(call))
        refuse_length(call);
    call->on->unread = call->answer != ANSWER_NONE && has_body(call);
}

static void handle(struct http_call *call)
{
    const struct http_options *options = &call->server->options;
    if (call->handled || call->answer != ANSWER_NONE)
        return;
    call->handled = true;
    call->on->reading = false;
    if (call->too_large)
        refuse_length(call);
    else if (call->body.failed)
        problem_answer(call, 503, "out_of_memory", "out of memory");
    else if (call->no_room)
        options->refuse(options->context, call);
    else
        options->handle(options->context, call);
    forget_body(call);
}

static bool go_on(struct http_call *call, const char *upload, size_t *upload_size)
{
    bool goes_on = true;
    if (!call->accepted)
        begin(call);
    else if (*upload_size) {
        goes_on = take_body(call, upload, *upload_size);
        *upload_size = 0;
    } else
        handle(call);
    return goes_on;
}

enum MHD_Result call_access(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                            const char *version, const char *upload, size_t *upload_size, void **slot)
{
    struct connection *on = connection_of(connection);
    struct http_call *call = *slot;
    bool goes_on = true;
    (void)version;
    if (!call && on)
        call = *slot = call_new(context, connection, on, method, url);
    if (!call || !call->method || !call->path || call->gone)
        return MHD_NO;
    call->in_callback = true;
    if (call->response)
        queue(call);
    else
        goes_on = go_on(call, upload, upload_size);
    call->in_callback = false;
    if (!goes_on || call->gone)
        return MHD_NO;
    if (call->handled && call->answer == ANSWER_NONE)
        suspend(call);
    return MHD_YES;
}

void call_completed(void *context, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode how)
{
    struct http_server *server = context;
    struct http_call *call = *slot;
    struct connection *on = connection_of(connection);
    (void)how;
    if (on) {
        on->requesting = on->reading = false;
        on->call = NULL;
        on->since_us = clock_us();
    }
    if (!call)
        return;
    *slot = NULL;
    stop_watching(call);
    tell_left(call);
    forget_body(call);
    server->options.done(server->options.context, call);
    if (call->response)
        MHD_destroy_response(call->response);
    buf_free(&call->part);
    free(call->method);
    free(call->path);
    free(call);
}

bool call_is_open(const struct http_call *call)
{
    return call->handled && !call->gone;
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
