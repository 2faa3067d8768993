/* One cell as the library sees it: an order to the warden, three or four pipes, and the events that come back. Used for
 * the program, its compile step, version probes and doctor alike. Never blocks except where it says so. */
#ifndef ENGINE_EXCHANGE_H
#define ENGINE_EXCHANGE_H

#include <cordon/error.h>
#include <cordon/run.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "output/capture.h"
#include "plan/plan.h"
#include "warden/protocol.h"

struct cordon_engine;

/* VOID: the waiting cell ended before it had its code, or said nothing of it. Start again without an offer. */
enum exchange_state { EXCHANGE_RUNNING, EXCHANGE_ENDED, EXCHANGE_FAILED, EXCHANGE_GONE, EXCHANGE_VOID };

struct exchange_input {
    const struct plan_source *plan;
    const int *mount_fds; /* one for each mount of the plan; borrowed */
    bool no_offer;        /* by an order in any case */
    bool files_read;      /* what the program writes is looked at after its end */
    bool lazy;            /* output is not watched until exchange_watch_output() */
    size_t output_cap;
    bool stop_on_output_limit;
    const char *stdin_bytes; /* NULL: from stdin_fd, or empty */
    size_t stdin_length;
    int stdin_fd;
    int (*go_on)(void *context); /* for exchange_run(): asked now and then, 0 cancels; may be NULL */
    void *go_on_context;
    const cordon_filter *filter; /* borrowed; may be NULL */
    void (*on_output)(void *context, int stream, const void *bytes, size_t length);
    void *context;
};

struct exchange {
    enum exchange_state state;
    struct cordon_engine *engine; /* borrowed */
    int epoll;                    /* borrowed from the run; -1: nothing is waited for but `talk` */
    int talk;
    struct exchange_stream {
        struct exchange *exchange;
        int fd;
        uint64_t total; /* bytes read, before the filter */
        struct capture capture;
    } streams[2];
    const cordon_filter *filter;
    int value_fd;
    struct buf value;
    bool value_too_long;
    int stdin_read, stdin_write; /* both kept: a program that closes its end must not raise SIGPIPE in the host */
    int stdin_source;            /* descriptor being passed on, or -1 */
    bool stdin_pollable;
    const char *stdin_at; /* bytes still to be written */
    size_t stdin_left;
    char *stdin_buffer;
    bool stop_on_output_limit, stop_sent;
    void (*on_output)(void *context, int stream, const void *bytes, size_t length);
    void *context;
    bool started;
    bool lazy;
    bool offered;   /* no order was given: the cell had been offered */
    bool told_late; /* a quiet order was given */
    struct event_failed failed;
    struct event_ended ended;
    struct wire_denial *denials; /* as many as `ended` says */
    int work_fd;                 /* the cell's work directory, once it ended */
    uint64_t sent_us;
};

/* Begins with a cell that was offered; false when there is none for such a run. Only who has nothing to pass to the
 * program can do without an epoll. */
bool exchange_take(struct exchange *exchange, struct cordon_engine *engine, int epoll,
                   const struct exchange_input *input);
/* Begins with an order to the warden. On failure nothing is left open. */
int exchange_order(struct exchange *exchange, struct cordon_engine *engine, int epoll,
                   const struct exchange_input *input, cordon_error *err);
/* Handles whatever is ready; the new state. */
enum exchange_state exchange_dispatch(struct exchange *exchange);
/* For a lazy one: from here on output is taken as it comes. A program that is soon done need not wake anybody. */
void exchange_watch_output(struct exchange *exchange, int epoll);
void exchange_command(struct exchange *exchange, uint32_t command);
/* The failure as an error for the caller. `files` names what the plan wrote, for errors about one of them. */
int exchange_error(const struct exchange *exchange, const struct plan_source *plan, cordon_error *err);
void exchange_close(struct exchange *exchange);

/* Runs a plan to its end in the calling thread. */
int exchange_run(struct exchange *exchange, struct cordon_engine *engine, const struct exchange_input *input,
                 cordon_error *err);

#endif
