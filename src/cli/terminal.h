/* What a person sees: colours, tables, Cordon's own lines, and writing that survives slow or closed readers. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum tint { TINT_NONE, TINT_BOLD, TINT_DIM, TINT_GOOD, TINT_WARN, TINT_BAD, TINT_COUNT };

struct cell_text {
    const char *text; /* borrowed; NULL is "" */
    enum tint tint;
};

/* True for a terminal that shows colours, and never under NO_COLOR. */
bool terminal_colours(FILE *stream);
/* `text` in colour where the stream shows colours. */
void terminal_tint(FILE *stream, enum tint tint, const char *text);
/* Text of a program, of any number of lines, without what would steer a terminal. */
void terminal_put(FILE *stream, const char *text, size_t length);
/* Rows of `columns` cells each, row by row; columns are as wide as their widest cell. */
void terminal_table(FILE *stream, const struct cell_text *cells, size_t columns, size_t rows);

/* One line "cordon: …" on standard error. What would steer a terminal is replaced in it: parts of a line may come from
 * the program that was run, which must not be able to steer the terminal or to forge a second line. */
void terminal_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes all bytes, waiting where the descriptor is non-blocking. 0 or a negative errno; -EINTR only when `*give_up`
 * (may be NULL) became true, so that a person can leave although nobody reads. */
int terminal_write(int fd, const void *bytes, size_t length, const volatile sig_atomic_t *give_up);

#endif
