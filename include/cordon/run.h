/* One run of one request.
 *
 * Life cycle: cordon_run_start() → cordon_run_wait() (or cordon_run_fd()/cordon_run_dispatch() in an event loop) →
 * cordon_run_free(). The request is borrowed: it must stay as it is until the run is freed. Freeing a run that has not
 * ended cancels it. The library makes no thread: output is read, and the callbacks are called, only inside wait or
 * dispatch. Limits are enforced by the warden whether or not anyone waits.
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
    void *context;
    /* The next bytes of stream 1 (stdout) or 2 (stderr). It may hold some back until more have come; with `length` 0
     * the stream has ended and nothing may be held back. A compile step's streams end before the program's begin. */
    void (*output)(void *context, int stream, const void *bytes, size_t length, cordon_emit emit, void *sink);
    /* Another part of the result, whole: its "value", or the content of a collected "file". */
    void (*text)(void *context, const char *what, const void *bytes, size_t length, cordon_emit emit, void *sink);
} cordon_filter;

typedef struct cordon_run_options {
    size_t struct_size;
    /* Called with bytes as they come, until the stream's cap. `stream` is 1 (stdout) or 2 (stderr). */
    void (*on_output)(void *context, int stream, const void *bytes, size_t length);
    void *context;
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

/* What the program did wrong is in the result. An error here means that Cordon did not run it: bad input, or a control
 * that cannot be enforced. `options` may be NULL. */
int cordon_run_start(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                     cordon_run **run, cordon_error *err);
/* Readable when cordon_run_dispatch() has work to do. Borrowed. */
int cordon_run_fd(const cordon_run *run);
/* Does what can be done without blocking; 1 when the run has ended, 0 when not, negative on error. */
int cordon_run_dispatch(cordon_run *run, cordon_error *err);
/* Blocks until the end; hands the result to the caller. */
int cordon_run_wait(cordon_run *run, cordon_result **result, cordon_error *err);
void cordon_run_cancel(cordon_run *run);
void cordon_run_free(cordon_run *run);

/* start + wait + free. */
int cordon_execute(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options,
                   cordon_result **result, cordon_error *err);

#ifdef __cplusplus
}
#endif
#endif
