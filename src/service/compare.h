/* Two results of one request, side by side. */
#ifndef SERVICE_COMPARE_H
#define SERVICE_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

/* {"same": bool, "differences": [{"field", "before", "after", "decides"}], "not_compared": [names]}. `same` is about
 * what decides: status, exit code, signal and output. Usage differs only beyond noise. NULL when memory is out. */
json_t *compare_results(const json_t *before, const json_t *after);

#endif
