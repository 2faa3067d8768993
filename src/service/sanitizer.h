/* The sanitiser of one run on the command line: the built-in rules, and what the request asks for. */
#ifndef SERVICE_SANITIZER_H
#define SERVICE_SANITIZER_H

#include <cordon/result.h>

#include "output/redact.h"

struct sanitizer {
    struct redactor *redactor; /* NULL: nothing is to be redacted */
    cordon_filter filter;
};

/* `fallback` is what a request that says nothing asks for. The rules are compiled once, by whoever comes first. */
int sanitizer_open(struct sanitizer *sanitizer, const cordon_request *request, enum sanitize fallback,
                   cordon_error *err);
/* For the options of the run; NULL when it needs none. */
const cordon_filter *sanitizer_filter(const struct sanitizer *sanitizer);
/* Tells the result what was taken out. */
void sanitizer_tell(const struct sanitizer *sanitizer, cordon_result *result);
void sanitizer_close(struct sanitizer *sanitizer);

/* Takes the request's secret values out of what is kept of it. */
int sanitizer_clean(const cordon_request *request, json_t **value, cordon_error *err);

#endif
