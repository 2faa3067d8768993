/* A request as the JSON that would make it again. */
#ifndef PLAN_REQUEST_WRITE_H
#define PLAN_REQUEST_WRITE_H

#include <jansson.h>

#include "plan/request.h"

/* Values of secret variables are null. NULL when memory is out. */
json_t *request_to_object(const cordon_request *request);

#endif
