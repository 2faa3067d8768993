/* The parts of the debug report. Inside debug*.c only. */
#ifndef EXPLAIN_DEBUG_PARTS_H
#define EXPLAIN_DEBUG_PARTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* From this share of a limit on, the next input may well meet it. */
#define DEBUG_NEAR_PERCENT 80

/* A member's text, or NULL where it is absent, no string or empty. */
const char *debug_member(const json_t *object, const char *key);
/* "main.py:2", "main.py" or "" into `text`; returns `text`. */
char *debug_place(const json_t *error, char *text, size_t size);
/* The text as one line of JSON: control characters become spaces, and one cut within a character is mended. */
json_t *debug_line(struct buf *line);
/* What was used of each limit that has a measure. */
json_t *debug_usage(const json_t *result);
/* What to change, most useful first; made from the report's other parts and the result. NULL when memory is out. */
json_t *debug_advice(const json_t *result, const json_t *report);

static inline void debug_cleanup_json(json_t **value)
{
    json_decref(*value);
}
#define auto_json __attribute__((cleanup(debug_cleanup_json)))

#endif
