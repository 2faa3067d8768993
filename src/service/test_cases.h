/* The tests that a command line names: a file of JSON, or a directory of inputs and outputs. */
#ifndef SERVICE_TEST_CASES_H
#define SERVICE_TEST_CASES_H

#include <cordon/error.h>
#include <jansson.h>

/* The `tests` of a Request; owned by the caller. */
int test_cases_read(const char *path, json_t **tests, cordon_error *err);

#endif
