/* What a program printed beside what was expected of it. Pure: bytes in, a verdict and one line that says where they
 * first differ out. */
#ifndef JUDGE_COMPARE_H
#define JUDGE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct slice {
    const char *data; /* any bytes; need not end with NUL */
    size_t length;
};

enum match {
    MATCH_EXACT,
    MATCH_TRIM,   /* white space at the ends of lines, and empty lines at the end, do not count */
    MATCH_TOKENS, /* words between white space */
    MATCH_FLOAT,  /* the same, and two numbers are equal when they are near */
    MATCH_CHECKER,
    MATCH_COUNT
};

#define COMPARE_TOLERANCE 1e-6

/* True when they are equal; else `reason` gets one line, which may be NULL. `match` is none of the checker's. */
bool compare_output(enum match match, double tolerance, struct slice expected, struct slice got, struct buf *reason);
/* Bytes as they can stand in one line of text, in quotes, cut when long. */
void compare_quote(struct buf *line, const char *bytes, size_t length);

#endif
