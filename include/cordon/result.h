/* A result: how a run ended, in the kernel's words. Owned by the caller, freed with cordon_result_free(); every pointer
 * a getter returns lives as long as the result. */
#ifndef CORDON_RESULT_H
#define CORDON_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cordon_result cordon_result;

typedef enum cordon_status {
    CORDON_STATUS_OK,
    CORDON_STATUS_NONZERO_EXIT,
    CORDON_STATUS_SIGNALED,
    CORDON_STATUS_WALL_LIMIT,
    CORDON_STATUS_CPU_LIMIT,
    CORDON_STATUS_MEMORY_LIMIT,
    CORDON_STATUS_PROCESS_LIMIT,
    CORDON_STATUS_DISK_LIMIT,
    CORDON_STATUS_OUTPUT_LIMIT,
    CORDON_STATUS_DENIED,
    CORDON_STATUS_COMPILE_ERROR,
    CORDON_STATUS_REJECTED,
    CORDON_STATUS_CANCELLED,
    CORDON_STATUS_INTERNAL_ERROR
} cordon_status;

cordon_status cordon_result_status(const cordon_result *result);
const char *cordon_status_name(cordon_status status);
/* The program's own exit code, or -1 when it did not exit by itself. */
int cordon_result_exit_code(const cordon_result *result);
/* The signal that ended it, or 0. */
int cordon_result_signal(const cordon_result *result);
/* What a command line should exit with: the program's code, or the table in cordon(1). */
int cordon_result_process_exit_code(const cordon_result *result);
/* Captured bytes as written by the program (capped); `length` may be NULL. Never NULL, always NUL-terminated. */
const char *cordon_result_stdout(const cordon_result *result, size_t *length);
const char *cordon_result_stderr(const cordon_result *result, size_t *length);
/* Where captured output was cut: the bytes before it were streamed while the program ran, those after were not.
 * False when nothing was cut. `stream` is 1 or 2. */
bool cordon_result_cut(const cordon_result *result, int stream, size_t *offset);
/* One line that says why it ended abnormally, or NULL. */
const char *cordon_result_reason(const cordon_result *result);
uint64_t cordon_result_wall_us(const cordon_result *result);
/* What a filter has taken out; shown in the JSON, so it is told before that is asked for. `where` is "stdout",
 * "stderr", "value" or "file". Copied. */
int cordon_result_add_redaction(cordon_result *result, const char *rule, const char *where, uint64_t count);
/* The whole result as one line of JSON (see docs/CONTRACT.md); NULL when memory is out. */
const char *cordon_result_json(cordon_result *result);
void cordon_result_free(cordon_result *result);

#ifdef __cplusplus
}
#endif
#endif
