/* Owns the pipes to a cell and the conversation with the warden about it. */
#include "engine/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "cell/report.h"
#include "engine/engine.h"
#include "engine/offers.h"
#include "output/value.h"
#include "plan/code.h"

#define CHUNK 65536
/* After the end no more than a full pipe can be waiting, and what tasks that are about to be killed add to it. */
#define DRAIN_MAX (2 << 20)
#define GO_ON_MS  100

static int watch(struct exchange *exchange, int fd, uint32_t events)
{
    if (exchange->epoll < 0)
        return 0;
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(exchange->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void unwatch_close(struct exchange *exchange, int *fd)
{
    if (*fd < 0)
        return;
    if (exchange->epoll >= 0)
        epoll_ctl(exchange->epoll, EPOLL_CTL_DEL, *fd, NULL);
    close(*fd);
    *fd = -1;
}

static void stop_stdin_source(struct exchange *exchange)
{
    if (exchange->stdin_source >= 0 && exchange->stdin_pollable)
        epoll_ctl(exchange->epoll, EPOLL_CTL_DEL, exchange->stdin_source, NULL);
    if (exchange->stdin_source >= 0)
        close(exchange->stdin_source);
    exchange->stdin_source = -1;
}

static void want_stdin_room(struct exchange *exchange, bool want)
{
    struct epoll_event event = {.events = want ? EPOLLOUT : 0, .data.fd = exchange->stdin_write};
    epoll_ctl(exchange->epoll, EPOLL_CTL_MOD, exchange->stdin_write, &event);
}

static void want_stdin_source(struct exchange *exchange, bool want)
{
    /* Out of the set while it is not wanted: a hang-up would be reported all the time. */
    struct epoll_event event = {.events = EPOLLIN, .data.fd = exchange->stdin_source};
    if (exchange->stdin_pollable)
        epoll_ctl(exchange->epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, exchange->stdin_source, &event);
}

/* The program sees end of file. The read end goes with it: whoever keeps it open keeps the pipe alive. */
static void end_stdin(struct exchange *exchange)
{
    stop_stdin_source(exchange);
    unwatch_close(exchange, &exchange->stdin_write);
    cleanup_close(&exchange->stdin_read);
    exchange->stdin_read = -1;
}

/* Moves what can be moved: from the source into the buffer, from the buffer into the pipe. */
static void feed_stdin(struct exchange *exchange, bool source_ready)
{
    while (exchange->stdin_write >= 0) {
        if (!exchange->stdin_left) {
            if (exchange->stdin_source < 0) {
                end_stdin(exchange);
                return;
            }
            if (exchange->stdin_pollable && !source_ready) {
                want_stdin_room(exchange, false);
                want_stdin_source(exchange, true);
                return;
            }
            source_ready = false;
            ssize_t n = read(exchange->stdin_source, exchange->stdin_buffer, CHUNK);
            if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
            if (n <= 0) {
                end_stdin(exchange);
                return;
            }
            exchange->stdin_at = exchange->stdin_buffer;
            exchange->stdin_left = (size_t)n;
        }
        ssize_t n = write(exchange->stdin_write, exchange->stdin_at, exchange->stdin_left);
        if (n < 0) {
            want_stdin_source(exchange, false);
            want_stdin_room(exchange, true);
            return;
        }
        exchange->stdin_at += n;
        exchange->stdin_left -= (size_t)n;
    }
}

/* Whatever the program is given to read, once it can. */
static int open_stdin_source(struct exchange *exchange, const struct exchange_input *input)
{
    exchange->stdin_at = input->stdin_bytes;
    exchange->stdin_left = input->stdin_bytes ? input->stdin_length : 0;
    if (input->stdin_bytes || input->stdin_fd < 0)
        return 0;
    exchange->stdin_buffer = malloc(CHUNK);
    exchange->stdin_source = fcntl(input->stdin_fd, F_DUPFD_CLOEXEC, 3);
    return exchange->stdin_buffer && exchange->stdin_source >= 0 ? 0 : -1;
}

static int send_order(struct cordon_engine *engine, const struct exchange *exchange, const struct exchange_input *input,
                      int run, int plan_fd)
{
    int fds[FD_MESSAGE_MAX] = {plan_fd, run};
    size_t count = 2;
    for (size_t i = 0; i < input->plan->mount_count; i++)
        fds[count++] = input->mount_fds[i];
    struct order order = {.size = sizeof order,
                          .type = ORDER_RUN,
                          .accepted_us = exchange->sent_us,
                          .files_read = input->files_read,
                          .quiet = exchange->told_late};
    return fd_send(engine->socket, &order, sizeof order, fds, count);
}

static int talk_to_warden(struct exchange *exchange, const struct exchange_input *input, int plan_fd, cordon_error *err)
{
    int talk[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk) < 0)
        return error_sys(err, errno, "warden", "cannot make a socket");
    exchange->talk = talk[0];
    auto_close int run = talk[1];
    if (watch(exchange, exchange->talk, EPOLLIN) < 0 || open_stdin_source(exchange, input) < 0)
        return error_sys(err, errno, "pipes", "cannot connect the program's standard streams");
    if (send_order(exchange->engine, exchange, input, run, plan_fd) == 0)
        return 0;
    return errno == EPIPE || errno == ECONNRESET
               ? error_set(err, CORDON_EGONE, "warden", "the warden has ended")
               : error_sys(err, errno, "warden", "cannot send the order to the warden");
}

static bool watch_output(struct exchange *exchange)
{
    const int read_from[] = {exchange->streams[0].fd, exchange->streams[1].fd, exchange->value_fd};
    bool good = true;
    for (unsigned i = 0; i < ARRAY_LEN(read_from); i++)
        good &= read_from[i] < 0 || watch(exchange, read_from[i], EPOLLIN) == 0;
    return good;
}

void exchange_watch_output(struct exchange *exchange, int epoll)
{
    bool late = exchange->lazy && exchange->started, first = exchange->epoll < 0;
    exchange->lazy = false;
    exchange->epoll = epoll;
    if (exchange->state != EXCHANGE_RUNNING)
        return;
    if ((first && watch(exchange, exchange->talk, EPOLLIN) < 0) || (late && !watch_output(exchange)))
        exchange->state = EXCHANGE_GONE;
}

/* The program runs: its streams have come, and it can be given what it is to read. */
static bool take_streams(struct exchange *exchange, const int *fds, size_t count)
{
    size_t first = exchange->told_late ? STARTED_STDOUT : 0;
    if (count < STARTED_VALUE - first) {
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
        return false;
    }
    exchange->started = true;
    if (!exchange->told_late) {
        exchange->stdin_read = fds[STARTED_STDIN_READ];
        exchange->stdin_write = fds[STARTED_STDIN_WRITE];
    }
    exchange->streams[0].fd = fds[STARTED_STDOUT - first];
    exchange->streams[1].fd = fds[STARTED_STDERR - first];
    exchange->value_fd = count > STARTED_VALUE - first ? fds[STARTED_VALUE - first] : -1;
    bool good = true;
    if (!exchange->lazy)
        good &= watch_output(exchange);
    if (!exchange->stdin_left && exchange->stdin_source < 0) {
        end_stdin(exchange);
        return good;
    }
    good &= watch(exchange, exchange->stdin_write, 0) == 0;
    if (exchange->stdin_source >= 0) {
        exchange->stdin_pollable = watch(exchange, exchange->stdin_source, EPOLLIN) == 0;
        good &= exchange->stdin_pollable || errno == EPERM; /* a regular file, always ready */
    }
    if (good)
        feed_stdin(exchange, false);
    return good;
}

/* The warden does not wait on the socket of a cell that was offered. */
static void ring(const struct exchange *exchange)
{
    if (exchange->offered)
        offers_ring(exchange->engine);
}

/* Straight to a program that waits, if one was offered for such a run. The warden is told first: it looks when the
 * program does anything that concerns it, or the bell rings, whatever has become of the caller. */
static bool take_offer(struct exchange *exchange, const struct exchange_input *input)
{
    const struct plan_source *plan = input->plan;
    struct code_source code = {
        .limit = plan->limits->value, .handover = plan->handover, .files = plan->files, .file_count = plan->file_count};
    while (code.handover && code.handover[code.handover_count])
        code.handover_count++;
    /* A descriptor to read from: what was taken from it would be lost with an offer that is void. */
    bool reads_on = !input->stdin_bytes && input->stdin_fd >= 0;
    if (!plan->pool || plan->mount_count || input->no_offer || reads_on || !code_fits(&code))
        return false;
    struct offer *offer = offer_take(exchange->engine, plan->pool, plan->limits);
    if (!offer)
        return false;
    struct run_command take = {
        .type = COMMAND_TAKE, .files_read = input->files_read, .accepted_us = exchange->sent_us, .sent_us = clock_us()};
    exchange->talk = offer->fds[OFFER_RUN];
    offer->fds[OFFER_RUN] = -1;
    exchange->offered = true;
    bool good = open_stdin_source(exchange, input) == 0 &&
                send(exchange->talk, &take, sizeof take, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof take;
    offers_ring_soon(exchange->engine);
    good = good && code_send(offer->fds[OFFER_PROGRAM], &code) == 0 && watch(exchange, exchange->talk, EPOLLIN) == 0;
    size_t streams = offer->fd_count - OFFER_STREAMS;
    offer->fd_count = OFFER_STREAMS; /* the exchange has the others now */
    good = take_streams(exchange, offer->fds + OFFER_STREAMS, streams) && good;
    offer_free(offer);
    return good;
}

static void open_exchange(struct exchange *exchange, struct cordon_engine *engine, int epoll,
                          const struct exchange_input *input)
{
    *exchange = (struct exchange){.engine = engine,
                                  .epoll = epoll,
                                  .talk = -1,
                                  .streams = {{.fd = -1}, {.fd = -1}},
                                  .value_fd = -1,
                                  .stdin_read = -1,
                                  .stdin_write = -1,
                                  .stdin_source = -1,
                                  .work_fd = -1,
                                  .sent_us = clock_us(),
                                  .stop_on_output_limit = input->stop_on_output_limit,
                                  .lazy = input->lazy,
                                  .filter = input->filter,
                                  .on_output = input->on_output,
                                  .context = input->context};
    for (int i = 0; i < 2; i++) {
        exchange->streams[i].exchange = exchange;
        capture_init(&exchange->streams[i].capture, input->output_cap);
    }
}

bool exchange_take(struct exchange *exchange, struct cordon_engine *engine, int epoll,
                   const struct exchange_input *input)
{
    open_exchange(exchange, engine, epoll, input);
    if (take_offer(exchange, input))
        return true;
    exchange_close(exchange);
    return false;
}

int exchange_order(struct exchange *exchange, struct cordon_engine *engine, int epoll,
                   const struct exchange_input *input, cordon_error *err)
{
    open_exchange(exchange, engine, epoll, input);
    exchange->told_late = input->lazy && !input->stdin_bytes && input->stdin_fd < 0;
    auto_close int plan_fd = -1;
    int code = plan_write(input->plan, &plan_fd, err);
    if (code == 0)
        code = talk_to_warden(exchange, input, plan_fd, err);
    if (code < 0)
        exchange_close(exchange);
    return code;
}

/* What the program printed, as it is to be seen. */
static void deliver(void *sink, const void *bytes, size_t length)
{
    struct exchange_stream *stream = sink;
    const struct exchange *exchange = stream->exchange;
    size_t live = capture_feed(&stream->capture, bytes, length);
    if (live && exchange->on_output)
        exchange->on_output(exchange->context, (int)(stream - exchange->streams) + 1, bytes, live);
}

static void take_output(struct exchange *exchange, int index, size_t most)
{
    struct exchange_stream *stream = &exchange->streams[index];
    char bytes[CHUNK];
    for (size_t taken = 0; stream->fd >= 0 && taken < most;) {
        ssize_t n = read(stream->fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        if (n == 0) {
            unwatch_close(exchange, &stream->fd);
            break;
        }
        taken += (size_t)n;
        stream->total += (size_t)n;
        if (exchange->filter)
            exchange->filter->output(exchange->filter->context, index + 1, bytes, (size_t)n, deliver, stream);
        else
            deliver(stream, bytes, (size_t)n);
    }
    if (exchange->stop_on_output_limit && !exchange->stop_sent && capture_truncated(&stream->capture)) {
        exchange->stop_sent = true;
        exchange_command(exchange, COMMAND_OUTPUT_LIMIT);
    }
}

static void take_value(struct exchange *exchange)
{
    char bytes[8192];
    for (;;) {
        ssize_t n = exchange->value_fd < 0 ? 0 : read(exchange->value_fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        if (n == 0) {
            unwatch_close(exchange, &exchange->value_fd);
            return;
        }
        exchange->value_too_long |= exchange->value.length + (size_t)n > VALUE_BYTES_MAX;
        if (!exchange->value_too_long)
            buf_append(&exchange->value, bytes, (size_t)n);
    }
}

/* What went to the tail was held back, because it might have had to be cut. If it was not, it is due now. */
static void release_tail(struct exchange *exchange, int index)
{
    const struct capture *capture = &exchange->streams[index].capture;
    size_t length;
    if (!exchange->on_output || !capture->tail_total || capture_truncated(capture))
        return;
    auto_free char *text = capture_text(capture, &length, NULL);
    if (text && length > capture->head_length)
        exchange->on_output(exchange->context, index + 1, text + capture->head_length, length - capture->head_length);
}

static void finish(struct exchange *exchange, enum exchange_state state)
{
    exchange->state = state;
    for (int i = 0; i < 2; i++) {
        take_output(exchange, i, DRAIN_MAX);
        if (exchange->filter)
            exchange->filter->output(exchange->filter->context, i + 1, NULL, 0, deliver, &exchange->streams[i]);
        release_tail(exchange, i);
    }
    take_value(exchange);
}

static void take_event(struct exchange *exchange)
{
    union {
        uint32_t type;
        struct event_failed failed;
        struct ended_message message;
    } event;
    struct event_ended *end = &event.message.ended;
    int fds[STARTED_MAX];
    size_t fd_count = 0;
    ssize_t n = fd_receive_now(exchange->talk, &event, sizeof event, fds, STARTED_MAX, &fd_count);
    if (n < 0 && errno == EAGAIN)
        return;
    bool ended = n >= (ssize_t)sizeof *end && event.type == EVENT_ENDED &&
                 (size_t)n == sizeof *end + end->denial_count * sizeof *event.message.denials;
    for (int i = 0; i < 2 && ended && !end->taken; i++)
        take_output(exchange, i, DRAIN_MAX);
    bool ran = exchange->streams[0].total + exchange->streams[1].total > 0;
    if (exchange->offered && !(ended && (end->taken || ran))) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        exchange->state = EXCHANGE_VOID;
    } else if (n >= (ssize_t)sizeof(uint32_t) && event.type == EVENT_STARTED) {
        if (!take_streams(exchange, fds, fd_count))
            finish(exchange, EXCHANGE_GONE);
    } else if (n == sizeof event.failed && event.type == EVENT_FAILED) {
        exchange->failed = event.failed;
        finish(exchange, EXCHANGE_FAILED);
    } else if (ended) {
        exchange->ended = *end;
        size_t size = end->denial_count * sizeof *exchange->denials;
        exchange->denials = size ? malloc(size) : NULL;
        if (exchange->denials)
            memcpy(exchange->denials, event.message.denials, size);
        else {
            exchange->ended.denials_dropped += end->denial_count;
            exchange->ended.denial_count = 0;
        }
        exchange->work_fd = fd_count ? fds[0] : -1;
        finish(exchange, EXCHANGE_ENDED);
    } else
        finish(exchange, EXCHANGE_GONE);
}

enum exchange_state exchange_dispatch(struct exchange *exchange)
{
    struct epoll_event events[8];
    bool talked = exchange->epoll < 0;
    int count = talked ? 0 : epoll_wait(exchange->epoll, events, 8, 0);
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        if (fd == exchange->talk)
            talked = true; /* last, so that output which came first is taken first */
        else if (fd == exchange->streams[0].fd)
            take_output(exchange, 0, CHUNK * 4);
        else if (fd == exchange->streams[1].fd)
            take_output(exchange, 1, CHUNK * 4);
        else if (fd == exchange->value_fd)
            take_value(exchange);
        else if (fd == exchange->stdin_source || fd == exchange->stdin_write)
            feed_stdin(exchange, fd == exchange->stdin_source);
    }
    if (talked && exchange->state == EXCHANGE_RUNNING)
        take_event(exchange);
    return exchange->state;
}

void exchange_command(struct exchange *exchange, uint32_t command)
{
    if (exchange->talk >= 0)
        send(exchange->talk, &command, sizeof command, MSG_NOSIGNAL | MSG_DONTWAIT);
    ring(exchange);
}

void exchange_close(struct exchange *exchange)
{
    end_stdin(exchange);
    unwatch_close(exchange, &exchange->talk);
    if (exchange->state == EXCHANGE_RUNNING)
        ring(exchange);
    for (int i = 0; i < 2; i++) {
        unwatch_close(exchange, &exchange->streams[i].fd);
        capture_free(&exchange->streams[i].capture);
    }
    unwatch_close(exchange, &exchange->value_fd);
    buf_free(&exchange->value);
    free(exchange->stdin_buffer);
    exchange->stdin_buffer = NULL;
    free(exchange->denials);
    exchange->denials = NULL;
    cleanup_close(&exchange->work_fd);
    exchange->work_fd = -1;
}

int exchange_run(struct exchange *exchange, struct cordon_engine *engine, const struct exchange_input *input,
                 cordon_error *err)
{
    auto_close int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        return error_sys(err, errno, "epoll", "cannot wait for the cell");
    int code = exchange_order(exchange, engine, epoll, input, err);
    if (code < 0)
        return code;
    bool cancelled = false;
    while (exchange_dispatch(exchange) == EXCHANGE_RUNNING) {
        struct pollfd ready = {.fd = epoll, .events = POLLIN};
        poll(&ready, 1, input->go_on ? GO_ON_MS : -1);
        if (input->go_on && !cancelled && !input->go_on(input->go_on_context)) {
            cancelled = true;
            exchange_command(exchange, COMMAND_CANCEL);
        }
    }
    if (exchange->state == EXCHANGE_ENDED)
        return 0;
    code = exchange_error(exchange, input->plan, err);
    exchange_close(exchange);
    return code;
}
