/* A request as the JSON that would make it again. */
#ifndef PLAN_REQUEST_WRITE_H
#define PLAN_REQUEST_WRITE_H

#include <jansson.h>

#include "plan/request.h"

/* Bytes as a request's JSON has them: text where they are UTF-8, and {"base64": …} otherwise. NULL when memory is out.
 */
json_t *request_content(const void *bytes, size_t length);
/* Values of secret variables are null. NULL when memory is out. */
json_t *request_to_object(const cordon_request *request);

#endif
