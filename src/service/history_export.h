/* Lists of runs for other programs: a JSON object or a line of CSV for each. */
#ifndef SERVICE_HISTORY_EXPORT_H
#define SERVICE_HISTORY_EXPORT_H

#include <jansson.h>

enum history_format { HISTORY_TABLE, HISTORY_JSONL, HISTORY_CSV };

/* What stands before the rows; the exit code, 0 for going on. */
int history_export_begin(enum history_format format);
int history_export_rows(enum history_format format, const json_t *items);

#endif
