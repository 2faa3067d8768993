/* Two results of one request, side by side. */
#ifndef SERVICE_COMPARE_H
#define SERVICE_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

/* {"same": true, false or null, "differences": [{"field", "before", "after", "decides"}], "not_compared": [{"field",
 * "why"}]}. `same` is about what decides: status, exit code, signal, output, value and files (by path and hash); null
 * when nothing of this differs, but not all of it could be compared. Usage differs only beyond noise. NULL when memory
 * is out. */
json_t *compare_results(const json_t *before, const json_t *after);

#endif
