/* Owns what a client is told about a request that libmicrohttpd cannot read: a bad Content-Length, the size of a chunk,
 * headers that are too large. libmicrohttpd answers those itself, with a page of HTML, and offers no hook. It queues
 * that page by its own public function, which the dynamic linker takes from this executable: here a problem document is
 * sent in its place. With a libmicrohttpd that does not call the function in this way, and through TLS, its page is
 * sent; test_malformed_requests_get_problems tells. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "http/internal.h"

typedef enum MHD_Result queue_function(struct MHD_Connection *connection, unsigned status,
                                       struct MHD_Response *response);

static const struct {
    unsigned status;
    const char *code, *title, *detail;
} rows[] = {
    {400, "bad_request", "Bad Request",
     "this is no HTTP/1.1 request: check the request line, the headers, Content-Length and the sizes of chunks"},
    {413, "too_large", "Content Too Large", "the announced body is too large"},
    {414, "too_large", "URI Too Long", "the request line is longer than 64 KiB"},
    {431, "too_large", "Request Header Fields Too Large", "the headers together are larger than 64 KiB"},
    {500, "internal_error", "Internal Server Error", "the server could not read the request"},
    {501, "not_supported", "Not Implemented", "the server does not know this way to send a body; use chunked"},
    {505, "not_supported", "HTTP Version Not Supported", "the server speaks HTTP/1.1"},
};

/* libmicrohttpd's own. */
enum MHD_Result refusal_queue_answer(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    static queue_function *queue;
    if (!queue)
        queue = (queue_function *)dlsym(RTLD_NEXT, "MHD_queue_response");
    return queue ? queue(connection, status, response) : MHD_NO;
}

#define HEADERS                                                                                                        \
    "Content-Type: application/problem+json\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"         \
    "Connection: close\r\n"

static size_t find_row(unsigned status)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return i;
    return 0;
}

/* libmicrohttpd 0.9.75 sends the headers of its own answer twice after a bad Content-Length, and the client takes the
 * second ones for the body. So the answer is written here: at this point nothing of another one is on its way. */
static void send_problem(const struct connection *on, size_t row)
{
    char body[400], text[1000];
    int length = snprintf(body, sizeof body,
                          "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,\"code\":\"%s\",\"detail\":\"%s\"}",
                          rows[row].title, rows[row].status, rows[row].code, rows[row].detail);
    int whole = snprintf(text, sizeof text, "HTTP/1.1 %u %s\r\n" HEADERS "Content-Length: %d\r\n\r\n%s",
                         rows[row].status, rows[row].title, length, body);
    (void)!send(on->fd, text, (size_t)whole, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What libmicrohttpd calls for a page of its own; the server's answers go by refusal_queue_answer(). MHD_NO makes it
 * close the connection. Through TLS nothing can be written here: there its page is sent. */
__attribute__((visibility("default"))) enum MHD_Result
MHD_queue_response(struct MHD_Connection *connection, unsigned int status, struct MHD_Response *page)
{
    struct connection *on = connection_of(connection);
    if (!on || on->server->options.tls_cert)
        return refusal_queue_answer(connection, status, page);
    on->unread = true; /* the client may still be sending */
    send_problem(on, find_row(status));
    return MHD_NO;
}
