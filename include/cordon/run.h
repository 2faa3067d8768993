/* One run of one request.
 *
 * Life cycle: cordon_run_start() → cordon_run_wait() (or cordon_run_fd()/cordon_run_dispatch() in an event loop) →
 * cordon_run_free(). The request is borrowed: it must stay as it is until the run is freed. Freeing a run that has not
 * ended cancels it. A run makes no thread: output is read, and the callbacks are called, only inside wait or dispatch.
 * Limits are enforced by the warden whether or not anyone waits.
 *
 * One run belongs to one thread at a time; different runs may be used from different threads. cordon_run_cancel() may
 * be called from any thread and from a signal handler. */
#ifndef CORDON_RUN_H
#define CORDON_RUN_H

#include <cordon/engine.h>
#include <cordon/request.h>
#include <cordon/result.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cordon_run cordon_run;

/* Changes what a program printed before it is kept or told of: redaction. Called only inside wait and dispatch. What is
 * to be delivered goes to `emit`, any number of times. */
typedef void (*cordon_emit)(void *sink, const void *bytes, size_t length);

typedef struct cordon_filter {
    void *context; /* handed to both functions */
    /* The next bytes of stream 1 (stdout) or 2 (stderr). It may hold some back until more have come; with `length` 0
     * the stream has ended and nothing may be held back. A compile step's streams end before the program's begin. */
    void (*output)(void *context, int stream, const void *bytes, size_t length, cordon_emit emit, void *sink);
    /* Another part of the result, whole: its "value", or the content or the name of a collected "file". */
    void (*text)(void *context, const char *what, const void *bytes, size_t length, cordon_emit emit, void *sink);
} cordon_filter;

typedef struct cordon_run_options {
    size_t struct_size;
    /* Called with bytes as they come, until the stream's cap. `stream` is 1 (stdout) or 2 (stderr). */
    void (*on_output)(void *context, int stream, const void *bytes, size_t length);
    void *context; /* handed to on_output */
    /* Passed on to the program's standard input until end of file, or -1. Borrowed: it must stay open until the run
     * ends. Used only when the request carries no stdin of its own. */
    int stdin_fd;
    /* Not zero: what is compiled is neither looked up nor kept. */
    int no_cache;
    /* NULL: output is delivered as it is, and a request that asks for it to be sanitized is refused. Borrowed until the
     * run is freed. */
    const cordon_filter *filter;
    /* The result's id, of at most 32 bytes; NULL: a new one that nobody can guess. */
    const char *id;
    /* What the result tells as timing.queue_us: how long the request waited before it was started here. */
    uint64_t queue_us;
} cordon_run_options;

#define CORDON_RUN_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(cordon_run_options), NULL, NULL, -1, 0, NULL, NULL, 0                                                   \
    }

/* Starts a run of a request. `options` may be NULL, which means CORDON_RUN_OPTIONS_INIT. The request must stay
 * unchanged until the run is freed. An error means that Cordon did not run the program: bad input, or a control that
 * cannot be enforced here. What the program does wrong is in the result. */
int cordon_run_start(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                     cordon_run **run, cordon_error *err);
/* Returns a descriptor that is readable when cordon_run_dispatch() has work to do. The run owns the descriptor; it may
 * be watched with poll() or epoll, but not read or closed. */
int cordon_run_fd(const cordon_run *run);
/* Does what can be done for a run without blocking. Callbacks of the run's options are called from here. Returns 1 when
 * the run has ended, 0 when it has not, or a negative code. After 1, cordon_run_wait() hands over the result at once.
 */
int cordon_run_dispatch(cordon_run *run, cordon_error *err);
/* Waits until a run has ended and hands over its result. Callbacks of the run's options are called from here. The
 * caller frees the result with cordon_result_free(); the run must still be freed. A second call is CORDON_ESTATE. */
int cordon_run_wait(cordon_run *run, cordon_result **result, cordon_error *err);
/* Cancels a run. The warden kills everything in its cell, and the run ends with CORDON_STATUS_CANCELLED, unless it had
 * ended before. May be called from any thread and from a signal handler, any number of times, until the run is freed.
 */
void cordon_run_cancel(cordon_run *run);
/* Frees a run. A run that has not ended is cancelled first. `run` may be NULL. */
void cordon_run_free(cordon_run *run);

/* Runs a request and waits for its result. This is cordon_run_start(), cordon_run_wait() and cordon_run_free() in one
 * call. */
int cordon_execute(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                   cordon_result **result, cordon_error *err);

#ifdef __cplusplus
}
#endif
#endif
