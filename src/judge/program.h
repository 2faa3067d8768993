/* A program that is run many times and compiled once: the one under test, a checker, an interactor. */
#ifndef JUDGE_PROGRAM_H
#define JUDGE_PROGRAM_H

#include <cordon/run.h>
#include <jansson.h>

#include "judge/compare.h"
#include "judge/judge.h"
#include "judge/runs.h"

struct program {
    char *json; /* its request without what differs from run to run */
    const json_t *args;
    char pointer[96];                    /* where it stands in the request, for errors: "" or "/tests/checker" */
    const struct judge_options *options; /* may be NULL */
    pthread_mutex_t lock;
    bool is_ready;      /* compiled, or known to need no compiling */
    cordon_error error; /* why it could not be made ready; code 0: nothing went wrong */
    cordon_request *source;
    cordon_run *compiled;  /* NULL: it is not compiled */
    cordon_result *failed; /* the compile step did not end well; NULL: it did */
};

struct program_file {
    const char *path;
    struct slice content;
};

/* What one run has of its own. */
struct program_input {
    const struct slice *input; /* NULL: the request's stdin */
    const json_t *args;        /* NULL: the request's */
    const json_t *limits[2];   /* each over the one before; NULL: none */
    char pointer[2][96];       /* where they stand */
    const struct program_file *files;
    size_t file_count;
    size_t output_bytes; /* at least so much is kept, unless the request sets a bound itself */
    unsigned wall_ms;    /* a limit where none is given; 0: the profile's */
    bool stop_at_output; /* output over the bound ends the run */
};

/* `request` is a Request without `tests`; it is copied. */
int program_open(struct program *program, const json_t *request, const char *pointer,
                 const struct judge_options *options, cordon_error *err);
void program_close(struct program *program);

/* The request of any run, without what one has of its own; freed by the caller. */
int program_read(const struct program *program, cordon_request **request, cordon_error *err);
/* Gives it the arguments, limits and input of one run, in place of those of another. `limits` are what it was read
 * with; its files stay. */
int program_give(const struct program *program, const struct program_input *input, const struct limits *limits,
                 cordon_request *request, cordon_error *err);
/* The request of one run; freed by the caller. */
int program_request(const struct program *program, const struct program_input *input, cordon_request **request,
                    cordon_error *err);
/* `code`, after its error was made to name a field of this program. */
int program_error(const struct program *program, int code, cordon_error *err);
/* Compiles it when nobody has yet; others wait meanwhile. `failed` is set afterwards if that did not go well. */
int program_prepare(struct program *program, cordon_engine *engine, struct runs *runs, cordon_error *err);
/* After program_prepare(). The request is the caller's, and stays until the run is freed. */
int program_start(const struct program *program, cordon_engine *engine, const cordon_request *request,
                  const cordon_run_options *options, cordon_run **run, cordon_error *err);

#endif
