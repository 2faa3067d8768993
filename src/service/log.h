/* Log lines as JSON objects, one a line, on standard error. Nothing secret is ever given to it. */
#ifndef SERVICE_LOG_H
#define SERVICE_LOG_H

#include <cordon/error.h>
#include <jansson.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

int log_level_from_name(const char *name, enum log_level *level);
void log_set_level(enum log_level level);
/* `fields` is taken; NULL: none. Adds time and level. A line is one write. */
void log_event(enum log_level level, const char *event, json_t *fields);
void log_error(const char *event, const cordon_error *err);

#endif
