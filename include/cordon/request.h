/* A request: what to run and under which limits. Built with the setters below or from the JSON of the same vocabulary.
 *
 * Life cycle: cordon_request_new() or cordon_request_from_json() → setters → any number of cordon_run_start() →
 * cordon_request_free(). Every pointer handed to a setter is copied before the call returns. A setter that fails leaves
 * the request as it was. A request may be used from one thread at a time; running it does not change it. */
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

/* Makes an empty request. Returns NULL when memory is out. The caller frees it with cordon_request_free(). */
cordon_request *cordon_request_new(void);
/* Makes a request from JSON. docs/CONTRACT.md has the fields. An unknown field or a value of the wrong type is
 * CORDON_EINVAL, and `field` of the error is the JSON pointer of the bad part. */
int cordon_request_from_json(const char *json, size_t length, cordon_request **request, cordon_error *err);
/* Frees a request. No run of the request may be left. `request` may be NULL. */
void cordon_request_free(cordon_request *request);

/* Sets the language of the program. `language` is an id or an alias from cordon_languages(), for example "python". */
int cordon_request_set_language(cordon_request *request, const char *language, cordon_error *err);
/* Sets the source code of the program. It becomes the entry file, under the name that the language uses for it. */
int cordon_request_set_code(cordon_request *request, const void *code, size_t length, cordon_error *err);
/* Adds a file to the work directory. `path` lies beneath it: relative, without "..", without an empty component.
 * Missing directories are made. */
int cordon_request_add_file(cordon_request *request, const char *path, const void *content, size_t length,
                            cordon_error *err);
/* Sets which of the added files is the program. Without this call and without code, the first file is. */
int cordon_request_set_entry(cordon_request *request, const char *path, cordon_error *err);
/* Sets what the program reads from its standard input. Without this call it reads end of file at once, or what
 * `stdin_fd` of the run's options supplies. */
int cordon_request_set_stdin(cordon_request *request, const void *bytes, size_t length, cordon_error *err);
/* Adds a command line argument of the program. Arguments keep the order in which they are added. */
int cordon_request_add_arg(cordon_request *request, const char *arg, cordon_error *err);
/* Sets an environment variable of the program. The value of a `secret` variable is not kept with the request, and is
 * redacted in everything that the program prints; this needs a filter in the run's options. A second call with the same
 * name replaces the value. */
int cordon_request_add_env(cordon_request *request, const char *name, const char *value, bool secret,
                           cordon_error *err);
/* Sets the profile that supplies every limit that is not set. It is "lightweight", "standard" (the default) or
 * "heavy". */
int cordon_request_set_profile(cordon_request *request, const char *profile, cordon_error *err);
/* Sets one limit. `name` is that of the JSON ("wall_ms", "memory_bytes", …); `value` has a unit ("5s", "512m"), is a
 * plain number in the unit of the name, or is "unlimited". */
int cordon_request_set_limit(cordon_request *request, const char *name, const char *value, cordon_error *err);
/* Sets the isolation level. Only "container", the default, exists in this version. */
int cordon_request_set_isolation(cordon_request *request, const char *isolation, cordon_error *err);
/* Sets the network that the program has. Only "none", the default, exists in this version. */
int cordon_request_set_network(cordon_request *request, const char *network, cordon_error *err);
/* Sets the environment: the files of the system that the program sees. Only "host", the default, exists in this
 * version. */
int cordon_request_set_environment(cordon_request *request, const char *environment, cordon_error *err);
/* Mounts a file or directory of the host into the cell. The calling process opens `source` with its own rights when
 * the run is started. `destination` is an absolute path in the cell. */
int cordon_request_add_mount(cordon_request *request, const char *source, const char *destination, bool writable,
                             cordon_error *err);
/* Adds a pattern of files to collect after the run. The files that match are in the result; see cordon_result_file().
 */
int cordon_request_add_collect(cordon_request *request, const char *glob, cordon_error *err);
/* Sets whether files that the program left as it was given them are collected, too. False is the default. */
int cordon_request_set_collect_all(cordon_request *request, bool all, cordon_error *err);
/* Allows the run although a control cannot be enforced here. `control` is a name from cordon_doctor(), for example
 * "cgroup". Without this call the run is refused with CORDON_EUNENFORCEABLE. The result's JSON tells under `enforced`
 * which controls were in force. */
int cordon_request_add_optional(cordon_request *request, const char *control, cordon_error *err);
/* Sets what happens when the program prints more than the output limit. "cut", the default, drops what is beyond the
 * limit; "stop" ends the run. */
int cordon_request_set_on_output_limit(cordon_request *request, const char *cut_or_stop, cordon_error *err);
/* Sets what is redacted in the output. `what` is "none", "secrets", "all", or the name of a rule; several rules may be
 * added. Without this call the filter in the run's options decides. The library has no filter of its own, so a request
 * that asks for redaction is refused unless the run's options have one. */
int cordon_request_add_sanitize(cordon_request *request, const char *what, cordon_error *err);
/* Sets whether a waiting interpreter may serve the run. With false the interpreter is started for this run, and shares
 * no hash seed or address layout with the interpreter of another run. True is the default. */
int cordon_request_set_warm(cordon_request *request, bool warm, cordon_error *err);
/* Sets whether the program may open pseudo-terminals. With true it may, and it is started for this run. The kernel's
 * own threads do the work of a terminal, and no limit counts that. False is the default. */
int cordon_request_set_pty(cordon_request *request, bool pty, cordon_error *err);
/* Sets how the result's JSON shows output. "utf8", the default, replaces invalid bytes by U+FFFD; "base64" keeps every
 * byte. cordon_result_stdout() always returns the bytes as they were printed. */
int cordon_request_set_output_encoding(cordon_request *request, const char *utf8_or_base64, cordon_error *err);

/* Adds a test case. cordon_judge() runs the program once for each case, with `input` as its standard input, and
 * compares what it prints with `expected`. `name` may be NULL: then the name is "case N". `input` may be NULL: then the
 * standard input is that of the request. `expected` may be NULL: then the program only has to end well. */
int cordon_request_add_test_case(cordon_request *request, const char *name, const void *input, size_t input_length,
                                 const void *expected, size_t expected_length, cordon_error *err);
/* Sets how output is compared with what a test case expects. `match` is "exact", "trim" (the default), "tokens",
 * "float" or "checker"; docs/TESTS.md explains them. */
int cordon_request_set_test_match(cordon_request *request, const char *match, cordon_error *err);
/* Sets a program that judges the output of each test case. It gets the arguments "input.txt output.txt expected.txt"
 * and ends with 0 when the case has passed and with 1 when it has not. */
int cordon_request_set_test_checker(cordon_request *request, const char *language, const void *code, size_t length,
                                    cordon_error *err);
/* Sets when judging ends. "never", the default, runs all cases; "first_failure" ends after the first case, in their
 * order, that did not pass. */
int cordon_request_set_test_stop(cordon_request *request, const char *never_or_first_failure, cordon_error *err);
/* Sets all tests of the request from JSON. The object is the `tests` of docs/CONTRACT.md: cases, interactors and limits
 * of single cases, or the test files of a framework. It replaces what the other calls have set; cases may be added
 * afterwards. cordon_judge() checks what is in it. */
int cordon_request_set_tests(cordon_request *request, const char *json, size_t length, cordon_error *err);

#ifdef __cplusplus
}
#endif
#endif
