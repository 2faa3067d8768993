/* The `tests` of a request, read and checked before anything runs. Borrows from the request's JSON. */
#ifndef JUDGE_SPEC_H
#define JUDGE_SPEC_H

#include <cordon/error.h>
#include <jansson.h>
#include <stdbool.h>

#include "judge/compare.h"

/* The most cases of one request, and the most text of a name. */
#define SPEC_CASES_MAX 100000
#define SPEC_NAME_MAX  200

struct spec_case {
    char *name;
    struct slice input, expected;
    void *decoded[2]; /* what they point to when they were base64 */
    bool has_input, has_expected;
    const json_t *args;   /* NULL: the request's */
    const json_t *limits; /* over those of `tests` and of the request; NULL: none */
    enum match match;
    double tolerance;
    const json_t *checker, *interactor; /* programs, or NULL */
};

struct spec {
    struct spec_case *cases; /* NULL: a framework's */
    size_t count;
    bool stop_at_failure;
    const json_t *limits; /* of every case; NULL: none */
    const char *framework;
    const json_t *files;
};

int spec_read(const json_t *tests, struct spec *spec, cordon_error *err);
void spec_free(struct spec *spec);

#define auto_spec __attribute__((cleanup(spec_free)))

#endif
