/* How Cordon itself fails: as one line for people or one JSON object for programs, and with which exit code. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <cordon/error.h>
#include <jansson.h>
#include <stdbool.h>

enum { EXIT_USAGE = 2, EXIT_OWN_FAILURE = 125, EXIT_INTERRUPTED = 130, EXIT_PIPE_CLOSED = 141 };

/* Tells of the error and returns the exit code that belongs to it. With `json`, standard output gets one object in the
 * shape of a result, and standard error nothing. */
int report_error(const cordon_error *err, bool json);
/* That object; NULL when memory is out. */
json_t *report_object(const cordon_error *err);
/* The same for a mistake on the command line of `command`: names its --help where the error has no hint of its own. */
int report_usage(const cordon_error *err, const char *command);

/* Text that the library made, parsed; NULL after telling of a failure. Strings in it may hold NUL. */
json_t *report_parse(const char *text);
/* Prints the text and a newline; the exit code. A terminal gets what would steer it as escapes of JSON. */
int report_json_text(const char *text);

/* A member's text, or NULL where it is absent or no string. */
const char *member_text(const json_t *object, const char *key);

static inline void cleanup_json(json_t **value)
{
    json_decref(*value);
}
#define auto_json __attribute__((cleanup(cleanup_json)))

#endif
