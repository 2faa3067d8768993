/* The debug report: what went wrong, what to change, what was denied, use against limits. Made from a Result alone, so
 * that it can be had of any run that is kept. */
#ifndef EXPLAIN_DEBUG_H
#define EXPLAIN_DEBUG_H

#include <jansson.h>

/* `result` and `request` as in contracts (the request may be NULL); NULL when memory is out. */
json_t *debug_report(const json_t *result, const json_t *request);
/* The same in a few lines for a model or a terminal; freed by the caller. */
char *debug_text(const json_t *report);

#endif
