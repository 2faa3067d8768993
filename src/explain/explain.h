/* Error analysis: what went wrong in the program, read from its own messages with the language's error table, and what
 * to do about it. Advice for people and models; never part of a verdict. */
#ifndef EXPLAIN_EXPLAIN_H
#define EXPLAIN_EXPLAIN_H

#include <cordon/result.h>
#include <stddef.h>

#include "lang/manifest.h"

struct denial {
    char kind[12]; /* syscall, network, module */
    char what[96]; /* ptrace, connect(93.184.216.34:80) */
    uint32_t count;
    char hint[160];
};

struct explain_input {
    const struct manifest *manifest;
    cordon_status status;
    int signal;              /* that ended it, or 0 */
    const char *stderr_text; /* NUL-terminated, may hold any bytes before that */
    size_t stderr_length;
    /* The source of a file of the program by the name in a message ("/work/main.py", "main.py"); NULL if unknown. */
    const char *(*source)(void *context, const char *file, size_t *length);
    void *context;
    const struct denial *denials;
    size_t denial_count;
    const char *reason; /* for limits: becomes the message; may be NULL */
};

struct explanation {
    char *type, *category, *message, *file, *snippet, *traceback, *hint; /* NULL when unknown */
    long line, column;                                                   /* 0 when unknown */
};

/* 1 when an error was found, 0 when there is none to tell of, negative without memory. */
int explain(const struct explain_input *input, struct explanation *explanation);
void explanation_free(struct explanation *explanation);

#endif
