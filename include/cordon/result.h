/* A result: how a run ended, in the kernel's words. Owned by the caller, freed with cordon_result_free(); every pointer
 * a getter returns lives as long as the result.
 *
 * A getter that fills a structure fills as much as `struct_size` says there is room for. Later versions add members at
 * the end. Initialise the structure with its CORDON_…_INIT; with a `struct_size` of 0 nothing is filled.
 *
 *     cordon_denial denial = CORDON_DENIAL_INIT;
 *     for (size_t i = 0; cordon_result_denial(result, i, &denial); i++)
 *         puts(denial.what);
 *
 * The result's timing, its limits, the controls that were in force and the compile step are only in its JSON. */
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

/* How much the program took. Times are in microseconds. */
typedef struct cordon_usage {
    size_t struct_size;
    uint64_t wall_us; /* from the start of the program to its end */
    /* Of all its processes together. */
    uint64_t cpu_user_us;
    uint64_t cpu_system_us;     /* the kernel's work for the program */
    uint64_t memory_peak_bytes; /* of the control group, with page cache of files and the kernel's own */
    uint64_t processes_peak;    /* processes and threads at the same time */
    uint64_t disk_bytes;        /* of its files, at the end */
    uint64_t inodes;            /* files and directories, at the end */
    uint64_t stdout_bytes;      /* what it printed, also beyond what was kept */
    uint64_t stderr_bytes;
    uint64_t memory_program_peak_bytes; /* what the programs alone held, in samples: the figure to compare runs by */
} cordon_usage;

#define CORDON_USAGE_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(cordon_usage), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                             \
    }

/* Something that the program tried and was refused. */
typedef struct cordon_denial {
    size_t struct_size;
    const char *kind; /* "syscall", "network" or "module" */
    const char *what; /* "ptrace", "connect(93.184.216.34:80)" */
    const char *hint; /* one line for people */
    uint64_t count;   /* how often it tried */
} cordon_denial;

#define CORDON_DENIAL_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(cordon_denial), NULL, NULL, NULL, 0                                                                     \
    }

/* How often a rule took something out of one part of the result. */
typedef struct cordon_redaction {
    size_t struct_size;
    const char *rule;  /* the rule's name */
    const char *where; /* "stdout", "stderr", "value" or "file" */
    uint64_t count;    /* how often */
} cordon_redaction;

#define CORDON_REDACTION_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(cordon_redaction), NULL, NULL, 0                                                                        \
    }

/* A file that was collected from the work directory. */
typedef struct cordon_file {
    size_t struct_size;
    const char *path;    /* beneath the work directory; any bytes but NUL */
    const char *content; /* `size` bytes, followed by a NUL */
    size_t size;
    const char *sha256; /* of the content, 64 lower-case hexadecimal digits */
} cordon_file;

#define CORDON_FILE_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(cordon_file), NULL, NULL, 0, NULL                                                                       \
    }

/* A file that matched a pattern and was not collected. */
typedef struct cordon_skipped_file {
    size_t struct_size;
    const char *path;
    const char *why; /* "it is a symbolic link" */
    bool has_size;   /* it is a regular file whose size is known */
    uint64_t size;   /* 0 when the size is not known */
} cordon_skipped_file;

#define CORDON_SKIPPED_FILE_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(cordon_skipped_file), NULL, NULL, false, 0                                                              \
    }

/* What the program's own messages say about its failure. Each text is NULL and each number 0 when it is unknown. */
typedef struct cordon_fault {
    size_t struct_size;
    const char *type;     /* "ZeroDivisionError" */
    const char *category; /* a word of docs/CONTRACT.md, "runtime" for example */
    const char *message;
    const char *file;
    const char *snippet; /* the source line, with its neighbours */
    const char *traceback;
    const char *hint; /* one line: what to do about it */
    long line;
    long column;
} cordon_fault;

#define CORDON_FAULT_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(cordon_fault), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0                                           \
    }

/* How many cases of a request for tests came to which end. */
typedef struct cordon_test_counts {
    size_t struct_size;
    size_t passed;
    size_t failed;
    size_t skipped; /* did not run, because judging ended before */
    size_t total;
} cordon_test_counts;

#define CORDON_TEST_COUNTS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(cordon_test_counts), 0, 0, 0, 0                                                                         \
    }

/* One test case, or one test of a framework. Texts are UTF-8, redacted and shortened; see docs/TESTS.md. */
typedef struct cordon_test {
    size_t struct_size;
    const char *name;
    const char *status; /* "passed", "failed", "skipped", "checker_error" or the name of a cordon_status */
    bool passed;
    const char *reason;   /* one line, or NULL when it passed */
    const char *expected; /* NULL when nothing was */
    size_t expected_length;
    const char *got; /* NULL when the program was not run */
    size_t got_length;
    /* 0 when the program was not run; a framework tells of the first only. */
    uint64_t wall_us;
    uint64_t cpu_user_us;
    uint64_t cpu_system_us;
    uint64_t memory_peak_bytes; /* 0 when the program was not run, like the next */
    uint64_t memory_program_peak_bytes;
} cordon_test;

#define CORDON_TEST_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(cordon_test), NULL, NULL, false, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0                                  \
    }

/* Returns how the run ended. */
cordon_status cordon_result_status(const cordon_result *result);
/* Returns the name of a status. It is the word of the JSON, for example "wall_limit". */
const char *cordon_status_name(cordon_status status);
/* Tells whether everything went well. For a plain run the status is CORDON_STATUS_OK; for a request for tests every
 * case has passed. */
bool cordon_result_success(const cordon_result *result);
/* Returns the program's own exit code. It is -1 when the program did not exit by itself. */
int cordon_result_exit_code(const cordon_result *result);
/* Returns the signal that ended the program. It is 0 when no signal did. */
int cordon_result_signal(const cordon_result *result);
/* Returns what a command line should exit with. This is the program's own code, or the code that cordon(1) lists for
 * the status. */
int cordon_result_process_exit_code(const cordon_result *result);
/* Returns what the program printed on standard output. The bytes are as the program wrote them, or as the run's filter
 * let them pass, up to the output limit. `length` may be NULL. The text is never NULL and is followed by a NUL. */
const char *cordon_result_stdout(const cordon_result *result, size_t *length);
/* Returns what the program printed on standard error. The bytes are as those of cordon_result_stdout(). */
const char *cordon_result_stderr(const cordon_result *result, size_t *length);
/* Tells whether and where captured output was cut. `stream` is 1 for standard output and 2 for standard error. The
 * bytes before `offset` were streamed while the program ran; those after it are the end of the output. Returns false,
 * and leaves `offset` alone, when nothing was cut. */
bool cordon_result_cut(const cordon_result *result, int stream, size_t *offset);
/* Returns one line that says why the run ended abnormally. It is NULL when the run ended well. */
const char *cordon_result_reason(const cordon_result *result);
/* Returns how long the program ran, in microseconds. */
uint64_t cordon_result_wall_us(const cordon_result *result);
/* Fills in what the program used. Returns false when nothing was filled in. */
bool cordon_result_usage(const cordon_result *result, cordon_usage *usage);
/* Fills in a denial by its number from 0. Returns false when there is none with this number. */
bool cordon_result_denial(const cordon_result *result, size_t index, cordon_denial *denial);
/* Fills in a collected file by its number from 0. Returns false when there is none with this number. */
bool cordon_result_file(const cordon_result *result, size_t index, cordon_file *file);
/* Returns how many files matched a pattern and were not collected. */
uint64_t cordon_result_skipped_files(const cordon_result *result);
/* Fills in a file that was not collected by its number from 0. Returns false when there is none with this number; only
 * the first 100 are described. */
bool cordon_result_skipped_file(const cordon_result *result, size_t index, cordon_skipped_file *file);
/* Fills in a redaction by its number from 0. Returns false when there is none with this number. */
bool cordon_result_redaction(const cordon_result *result, size_t index, cordon_redaction *redaction);
/* Fills in what the program's own messages say about its failure. Returns false when they say nothing. This is advice:
 * the status rests on the kernel's word alone. */
bool cordon_result_fault(const cordon_result *result, cordon_fault *fault);
/* Fills in how many test cases passed, failed and were skipped. Returns false when the result is not from
 * cordon_judge(). */
bool cordon_result_tests(const cordon_result *result, cordon_test_counts *counts);
/* Fills in a test case by its number from 0, in the order of the request. Cases that were skipped are left out, so that
 * the number of a later case is smaller than its place in the request. Returns false when there is none with this
 * number. */
bool cordon_result_test(const cordon_result *result, size_t index, cordon_test *test);
/* Adds to the result what a filter has taken out. `where` is "stdout", "stderr", "value" or "file". The texts are
 * copied. The JSON shows it, so the call comes before cordon_result_json(). Returns CORDON_ENOMEM when memory is out.
 */
int cordon_result_add_redaction(cordon_result *result, const char *rule, const char *where, uint64_t count);
/* Returns the whole result as one line of JSON. docs/CONTRACT.md has the fields. Returns NULL when memory is out. */
const char *cordon_result_json(cordon_result *result);
/* Frees a result, with everything that its getters returned. `result` may be NULL. */
void cordon_result_free(cordon_result *result);

#ifdef __cplusplus
}
#endif
#endif
