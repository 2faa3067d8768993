/* Owns the advice: what a limit, a signal or an error of the system means inside a cell, and what to change. Data, no
 * decisions. Called by explain(). */
#include "explain/hints.h"

#include <signal.h>
#include <string.h>

#include "base/cleanup.h"

static const struct advice status_advice[] = {
    [CORDON_STATUS_WALL_LIMIT] = {"WallTimeLimit", "timeout",
                                  "look for an endless loop or a wait for input; or raise limits.wall_ms"},
    [CORDON_STATUS_CPU_LIMIT] = {"CpuTimeLimit", "timeout",
                                 "look for an endless loop or a slow algorithm; or raise limits.cpu_ms"},
    [CORDON_STATUS_MEMORY_LIMIT] = {"MemoryLimit", "memory",
                                    "keep less in memory (files in /work and /tmp count too); or raise "
                                    "limits.memory_bytes"},
    [CORDON_STATUS_PROCESS_LIMIT] = {"ProcessLimit", "processes",
                                     "start fewer processes and threads; or raise limits.processes"},
    [CORDON_STATUS_DISK_LIMIT] =
        {"DiskLimit", "disk",
         "write less to /work, /tmp and /dev/shm; or raise limits.disk_bytes, limits.inodes or "
         "limits.file_bytes"},
    [CORDON_STATUS_OUTPUT_LIMIT] = {"OutputLimit", "output", "print less; or raise limits.output_bytes"},
    [CORDON_STATUS_DENIED] = {"Denied", "permission", NULL}, /* the policy has a hint for every call */
};

const struct advice *hint_for_status(cordon_status status)
{
    if ((size_t)status >= ARRAY_LEN(status_advice) || !status_advice[status].type)
        return NULL;
    return &status_advice[status];
}

static const struct {
    int signal;
    struct advice advice;
    const char *words;
} signals[] = {
    {SIGSEGV,
     {"SIGSEGV", "crash", "look for a null or dangling pointer, an index out of bounds or endless recursion"},
     "segmentation fault: it touched memory that is not its own"},
    {SIGBUS,
     {"SIGBUS", "crash", "look for a mapped file that is shorter than its mapping, or a misaligned access"},
     "bus error: it touched memory that has nothing behind it"},
    {SIGABRT,
     {"SIGABRT", "crash", "the lines on stderr before the end say what check failed"},
     "aborted itself: a failed assertion, an uncaught exception or corrupted memory"},
    {SIGFPE,
     {"SIGFPE", "crash", "look for an integer division by zero"},
     "arithmetic error such as a division by zero"},
    {SIGILL,
     {"SIGILL", "crash", "look for a missing return, an intended trap, or code built for another processor"},
     "illegal instruction"},
    {SIGTRAP, {"SIGTRAP", "crash", "the runtime stopped itself at a trap"}, "trace trap"},
    {SIGSYS,
     {"SIGSYS", "permission", "look for 32-bit code, or for a process of the program itself that sent it"},
     "made a system call that is not allowed"},
    {SIGPIPE,
     {"SIGPIPE", "runtime", "it wrote to a pipe or socket whose reader had gone"},
     "wrote to a pipe that nobody reads"},
    {SIGXCPU, {"SIGXCPU", "timeout", "use less processor time; or raise limits.cpu_ms"}, "used up its processor time"},
    {SIGXFSZ,
     {"SIGXFSZ", "disk", "write smaller files; or raise limits.file_bytes"},
     "wrote a file beyond the size limit"},
    {SIGKILL,
     {"SIGKILL", "crash", "Cordon did not send it; a process of the program itself must have"},
     "killed by a process inside the cell"},
    {SIGTERM,
     {"SIGTERM", "runtime", "a process of the program itself sent it"},
     "asked to end by a process inside the cell"},
};
static const struct advice other_signal = {"Signal", "crash", NULL};

const struct advice *hint_for_signal(int signal, const char **words)
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (signals[i].signal == signal) {
            *words = signals[i].words;
            return &signals[i].advice;
        }
    *words = "ended by a signal";
    return &other_signal;
}

#define NO_NETWORK "this run has no network (network: none); pass the data in with files, stdin or a mount"
#define PACKAGES                                                                                                       \
    "a run has no network: install packages on the host, where every run sees them, or send the package's files with " \
    "`files`"
#define TEXTS_MAX 10

/* In order: the more special text first. */
static const struct {
    const char *texts[TEXTS_MAX]; /* parts of a message, in any case; ends with NULL */
    struct advice advice;
} messages[] = {
    {{"PEP 668", "No matching distribution found for", "ENOTCACHED", "dpkg frontend lock",
      "a run has no network: install"},
     {NULL, "import", PACKAGES}},
    {{"Read-only file system", "EROFS"},
     {NULL, "permission", "only /work, /tmp and /dev/shm are writable, and what is mounted with rw; write there"}},
    {{"Network is unreachable", "ENETUNREACH", "Temporary failure in name resolution", "Could not resolve host",
      "EAI_AGAIN", ":53: "},
     {NULL, "network", NO_NETWORK}},
    {{"Connection refused", "ECONNREFUSED"},
     {NULL, "network", "nothing listens there: inside a cell only its own loopback can be reached"}},
    {{"No space left on device", "ENOSPC"},
     {NULL, "disk", "/work, /tmp and /dev/shm share limits.disk_bytes and limits.inodes; write less or raise them"}},
    {{"File too large", "EFBIG"}, {NULL, "disk", "one file may have limits.file_bytes; write less or raise it"}},
    {{"can't start new thread", "can't create Thread", "pthread_create failed", "unable to create native thread",
      "Resource temporarily unavailable"},
     {NULL, "processes", "threads count as processes; start fewer of both or raise limits.processes"}},
    {{"Too many open files", "EMFILE"},
     {NULL, NULL, "close files that are no longer used; or raise limits.open_files"}},
    {{"Maximum call stack size exceeded"}, {NULL, NULL, "recursion without an end, or deeper than the stack allows"}},
    {{"JavaScript heap out of memory", "Allowed memory size"},
     {NULL, "memory", "the heap is sized from limits.memory_bytes; keep less in memory or raise it"}},
    {{"Cannot allocate", "bad_alloc", "out of memory", "failed to allocate memory", "not enough memory",
      "memory allocation of", "Array buffer allocation failed", "OutOfMemoryError"},
     {NULL, "memory", "keep less in memory; or raise limits.memory_bytes"}},
    {{"Operation not permitted", "EPERM"},
     {NULL, "permission", "the program runs without privileges in its cell, and some system calls are refused"}},
    {{"must be superuser"}, {NULL, "permission", NULL}}, /* the refused call has the hint */
    {{"Permission denied", "EACCES"},
     {NULL, "permission", "the program is the user cordon (1000): only /work, /tmp and /dev/shm are its own"}},
};

const struct advice *hint_for_message(const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        for (const char *const *text = messages[i].texts; *text; text++)
            if (strcasestr(message, *text))
                return &messages[i].advice;
    return NULL;
}

bool hint_row(size_t index, const char **text, const char **hint)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        for (const char *const *at = messages[i].texts; *at; at++)
            if (messages[i].advice.hint && index-- == 0) {
                *text = *at;
                *hint = messages[i].advice.hint;
                return true;
            }
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (index-- == 0) {
            *text = signals[i].advice.type;
            *hint = signals[i].advice.hint;
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN(status_advice); i++)
        if (status_advice[i].hint && index-- == 0) {
            *text = status_advice[i].type;
            *hint = status_advice[i].hint;
            return true;
        }
    return false;
}
