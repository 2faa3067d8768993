/* A result for the rest of the project: what needs it as JSON takes the object from here, because the text of a result
 * is written for others and never read back. */
#ifndef ENGINE_RESULT_JSON_H
#define ENGINE_RESULT_JSON_H

#include <cordon/result.h>
#include <jansson.h>

#include "engine/account.h"

/* The whole result, to be freed by the caller; NULL without memory. */
json_t *result_object(const cordon_result *result);
const char *result_id(const cordon_result *result);
/* What the cells of its run used. */
const struct account *result_account(const cordon_result *result);

#endif
