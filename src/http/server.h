/* An HTTP server in the daemon's loop, on libmicrohttpd. Knows nothing of sandboxes: it has calls, which are answered
 * at once, later, or as a stream, and it notices when a client leaves.
 *
 * Life of a call: accept() when its headers are there → handle() when its body is → http_answer() or http_stream(), now
 * or after http_wait() → done(). Everything happens in the loop's thread. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/text.h"
#include "service/loop.h"

struct http_server;
struct http_call;

struct http_options {
    const char *listen;       /* "host:port", "[v6]:port" or "unix:/path" */
    int listen_fd;            /* from socket activation; -1: made from `listen` */
    char *tls_cert, *tls_key; /* PEM texts, or NULL */
    size_t body_max;
    /* A few more are accepted, so that one with a call to make can always take the place of an idle one. */
    unsigned connections;
    uint64_t request_us; /* a client that takes longer to send a request is not one */
    /* The body has not come yet. It may answer, and the body is then not read. */
    void (*accept)(void *context, struct http_call *call);
    /* So many bytes of its body are about to be held; 0: they are let go. False when there is no room for them: the
     * rest of the body is dropped, and then refuse() answers. */
    bool (*room)(void *context, struct http_call *call, size_t body_bytes);
    void (*refuse)(void *context, struct http_call *call);
    /* The body is whole. It is let go when this returns. */
    void (*handle)(void *context, struct http_call *call);
    /* The answer is out, or the client is gone; the call ends with this. */
    void (*done)(void *context, struct http_call *call);
    void *context;
};

int http_server_open(struct loop *loop, const struct http_options *options, struct http_server **server,
                     cordon_error *err);
/* Ends every call. */
void http_server_close(struct http_server *server);
/* Where it listens, for people: "http://127.0.0.1:7700". */
const char *http_server_address(const struct http_server *server);
unsigned http_server_connections(const struct http_server *server);
/* Whose request is whole, and whose answer is not out yet. */
unsigned http_server_calls(const struct http_server *server);
bool http_server_is_local(const struct http_server *server); /* loopback or a Unix socket */

/* What was asked. Borrowed for the call's life; NULL when absent. */
const char *http_method(const struct http_call *call);
const char *http_path(const struct http_call *call);
const char *http_header(const struct http_call *call, const char *name);
const char *http_query(const struct http_call *call, const char *name);
/* Within handle(). */
const char *http_body(const struct http_call *call, size_t *length);
uint64_t http_began_us(const struct http_call *call);
/* The status it was answered with; 0: not yet. */
int http_status(const struct http_call *call);

/* Something of the caller's that goes along. */
void http_set_data(struct http_call *call, void *data);
void *http_data(const struct http_call *call);

/* The answer comes later. `left` is called at most once, when the client goes before that. */
void http_wait(struct http_call *call, void (*left)(void *context), void *context);

/* Before the answer. Copied. Of two with one name the first stays. */
void http_add_header(struct http_call *call, const char *name, const char *value);
/* The body is copied. `type` may be NULL where there is none. */
void http_answer(struct http_call *call, int status, const char *type, const void *body, size_t length);
/* The body is shared: one more reference is taken. */
void http_answer_text(struct http_call *call, int status, const char *type, struct http_text *body);

/* What there is to send of an answer in parts. */
enum http_part {
    HTTP_PART_LATER, /* nothing at this moment; http_stream_wake() tells when there is */
    HTTP_PART_ADDED, /* something was added, and there may be more */
    HTTP_PART_LAST,  /* the answer ends with what was added */
};

struct http_stream {
    /* Asked when the reader has taken what it was given before: adds a small part, so that a reader which does not read
     * makes the server hold one such part and no more. */
    enum http_part (*next)(void *context, struct buf *part);
    /* Called exactly once: the answer is out, or its client is gone. */
    void (*closed)(void *context);
    void *context;
};

/* An answer in parts. */
void http_stream(struct http_call *call, int status, const char *type, const struct http_stream *stream);
/* There may be something to send. */
void http_stream_wake(struct http_call *call);

#endif
