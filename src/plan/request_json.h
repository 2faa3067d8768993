/* Reading the members of a request's JSON: shared by the document (request_json.c) and its fields. `pointer` is where
 * the value lies in the document; every error carries it. */
#ifndef PLAN_REQUEST_JSON_H
#define PLAN_REQUEST_JSON_H

#include <jansson.h>

#include "plan/request.h"

typedef int json_field_reader(cordon_request *request, const json_t *value, const char *pointer, cordon_error *err);

json_field_reader json_read_code, json_read_stdin, json_read_files, json_read_env, json_read_limits, json_read_mounts,
    json_read_sanitize, json_read_tests;

/* A document that somebody else wrote: bounded in size, depth and number of values, without members given twice. */
int json_parse(const char *json, size_t length, json_t **root, cordon_error *err);
/* At most so many bytes of memory are needed for the value that parsing makes of it. */
size_t json_cost(const char *json, size_t length);
/* What cordon_request_from_json() makes of it. */
int request_from_object(const json_t *root, cordon_request **request, cordon_error *err);

int json_wrong_type(const json_t *value, const char *pointer, const char *expected, cordon_error *err);
/* A string without NUL, borrowed from the value. */
int json_read_text(const json_t *value, const char *pointer, const char **text, cordon_error *err);
/* Refuses members of `object` other than `names`. */
int json_check_members(const json_t *object, const char *pointer, const char *const *names, size_t count,
                       cordon_error *err);

#endif
