/* The options of `cordon test`: those of `cordon run` that say what to run and under which limits, and its own. */
#ifndef SERVICE_TEST_FLAGS_H
#define SERVICE_TEST_FLAGS_H

#include <jansson.h>

#include "cli/run_flags.h"

struct test_flags {
    struct run_flags run; /* first: the handlers of `cordon run` are called with this address */
    json_t *request;      /* the Request as JSON, without `tests`; owned */
    const char *tests;    /* path */
    const char *stop;
    unsigned parallel;
};

/* Reads the whole command line, with the program and the tests; OPTIONS_HELP after --help. `file` is the program's path
 * when its name is to tell the language, else NULL. */
int test_flags_read(struct test_flags *flags, int argc, char **argv, const char **file, cordon_error *err);
void test_flags_free(struct test_flags *flags);
/* An option's number from 1 on. */
int test_flags_number(const char *value, unsigned *number, cordon_error *err);

#endif
