/* A request: what to run and under which limits. Built with the setters below or from the JSON of the same vocabulary.
 *
 * Life cycle: cordon_request_new() or cordon_request_from_json() → setters → any number of cordon_run_start() →
 * cordon_request_free(). Every pointer handed to a setter is copied before the call returns. A request may be used from
 * one thread at a time; running it does not change it. */
#ifndef CORDON_REQUEST_H
#define CORDON_REQUEST_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cordon_request cordon_request;

cordon_request *cordon_request_new(void); /* NULL when memory is out */
int cordon_request_from_json(const char *json, size_t length, cordon_request **request, cordon_error *err);
void cordon_request_free(cordon_request *request);

int cordon_request_set_language(cordon_request *request, const char *language, cordon_error *err);
int cordon_request_set_code(cordon_request *request, const void *code, size_t length, cordon_error *err);
/* `path` lies beneath the work directory: relative, no "..", no empty component. */
int cordon_request_add_file(cordon_request *request, const char *path, const void *content, size_t length,
                            cordon_error *err);
int cordon_request_set_entry(cordon_request *request, const char *path, cordon_error *err);
int cordon_request_set_stdin(cordon_request *request, const void *bytes, size_t length, cordon_error *err);
int cordon_request_add_arg(cordon_request *request, const char *arg, cordon_error *err);
int cordon_request_add_env(cordon_request *request, const char *name, const char *value, bool secret,
                           cordon_error *err);
int cordon_request_set_profile(cordon_request *request, const char *profile, cordon_error *err);
/* `name` as in the JSON ("wall_ms", "memory_bytes", …); `value` with units ("5s", "512m"), plain, or "unlimited". */
int cordon_request_set_limit(cordon_request *request, const char *name, const char *value, cordon_error *err);
int cordon_request_set_isolation(cordon_request *request, const char *isolation, cordon_error *err);
int cordon_request_set_network(cordon_request *request, const char *network, cordon_error *err);
int cordon_request_set_environment(cordon_request *request, const char *environment, cordon_error *err);
int cordon_request_add_mount(cordon_request *request, const char *source, const char *destination, bool writable,
                             cordon_error *err);
int cordon_request_add_collect(cordon_request *request, const char *glob, cordon_error *err);
int cordon_request_add_optional(cordon_request *request, const char *control, cordon_error *err);
int cordon_request_set_on_output_limit(cordon_request *request, const char *cut_or_stop, cordon_error *err);
/* "none", "secrets", "all", or the name of a rule, of which there may be several. Unset means what the caller's filter
 * does by default; the library itself has none. */
int cordon_request_add_sanitize(cordon_request *request, const char *what, cordon_error *err);
/* False: the interpreter is started for this run, and shares no hash seed or address layout with another run's. */
int cordon_request_set_warm(cordon_request *request, bool warm, cordon_error *err);
int cordon_request_set_output_encoding(cordon_request *request, const char *utf8_or_base64, cordon_error *err);

#ifdef __cplusplus
}
#endif
#endif
