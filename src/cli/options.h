/* Command-line options as tables: one row tells the parser, the help and the handler everything about an option. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>

struct option_row {
    const char *long_name; /* NULL: `help` is a heading */
    char short_name;       /* '\0': none */
    const char *argument;  /* name of its argument in the help; NULL: it takes none */
    const char *help;      /* '\n' begins a further line */
    /* `value` is NULL for an option without argument. The error's text need not name the option. */
    int (*handle)(void *context, const struct option_row *row, const char *value, cordon_error *err);
    const char *key; /* for the handler: what this option is called in a request */
};

struct usage {
    const char *synopsis; /* lines of "cordon …"; '\n' between */
    const char *about;
    const struct option_row *rows;
    size_t row_count;
    const char *closing; /* examples and the like; may be NULL */
    bool anywhere;       /* options may follow words; else what follows the first word is a program's */
};

#define OPTIONS_MAX  48
#define OPTIONS_HELP 1

/* Reads options; the first word that is none is argv[*first], with the other words after it. Adds -h and --help, which
 * print the help and return OPTIONS_HELP. Goes on after an error to see all options (so that --json counts wherever it
 * stands) and returns the first one. */
int options_parse(const struct usage *usage, int argc, char **argv, void *context, int *first, cordon_error *err);
void options_print_help(const struct usage *usage);

/* For commands that take options only: an error when argv[first] exists. */
int options_no_words(int argc, char **argv, int first, cordon_error *err);

/* A flag of the context, which must be a `bool`. */
int option_set_flag(void *context, const struct option_row *row, const char *value, cordon_error *err);

/* Whether the word is one of these options: "-l", "--language" or "--language=c". */
bool options_find(const struct usage *usage, const char *word);
/* A time of the command line: there a number without a unit is an error that names "5s" and "5ms". */
int option_check_time(const char *value, cordon_error *err);

/* The one of `names` that `word` was probably meant to be, or NULL. */
const char *options_nearest(const char *word, const char *const *names, size_t count);

#endif
