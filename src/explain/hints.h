/* The advice tables. Inside src/explain only. */
#ifndef EXPLAIN_HINTS_H
#define EXPLAIN_HINTS_H

#include "explain/explain.h"

struct advice {
    const char *type;     /* NULL: keep the program's own */
    const char *category; /* NULL: keep */
    const char *hint;     /* NULL: none */
};

/* Limits and denials: what the status alone tells. NULL when the program's own messages are to be read. */
const struct advice *hint_for_status(cordon_status status);
/* A signal in plain words; never NULL. `type` gets its name. */
const struct advice *hint_for_signal(int signal, const char **words);
/* What the cell, not the program, makes of a message ("Read-only file system"); NULL when it is the program's own
 * affair. */
const struct advice *hint_for_message(const char *message);
/* The rows of the tables, counted from 0: what a row is for and its hint. False beyond the last. For tests. */
bool hint_row(size_t index, const char **text, const char **hint);

#endif
