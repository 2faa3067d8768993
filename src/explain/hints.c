/* Owns the advice: what a limit, a signal or an error of the system means inside a cell, and what to change. Data, no
 * decisions. Called by explain(), and for denials by the engine. */
#include "explain/hints.h"

#include <fnmatch.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
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
    [CORDON_STATUS_DENIED] = {"Denied", "permission", "the policy ends a program that makes this call"},
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
    {SIGSYS, {"SIGSYS", "permission", "the system call policy ended it"}, "made a system call that is not allowed"},
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

/* In order: the more special text first. */
static const struct {
    const char *text;
    struct advice advice;
} messages[] = {
    {"Read-only file system", {NULL, "permission", "only /work, /tmp and /dev/shm are writable; write there"}},
    {"Network is unreachable", {NULL, "network", NO_NETWORK}},
    {"ENETUNREACH", {NULL, "network", NO_NETWORK}},
    {"Temporary failure in name resolution", {NULL, "network", NO_NETWORK}},
    {"Name or service not known", {NULL, "network", NO_NETWORK}},
    {"Could not resolve host", {NULL, "network", NO_NETWORK}},
    {"getaddrinfo", {NULL, "network", NO_NETWORK}},
    {"EAI_AGAIN", {NULL, "network", NO_NETWORK}},
    {"No address associated with hostname", {NULL, "network", NO_NETWORK}},
    {"dial tcp: lookup", {NULL, "network", NO_NETWORK}},
    {"No space left on device",
     {NULL, "disk", "/work, /tmp and /dev/shm share limits.disk_bytes and limits.inodes; write less or raise them"}},
    {"ENOSPC",
     {NULL, "disk", "/work, /tmp and /dev/shm share limits.disk_bytes and limits.inodes; write less or raise them"}},
    {"File too large", {NULL, "disk", "one file may have limits.file_bytes; write less or raise it"}},
    {"can't start new thread",
     {NULL, "processes", "threads count as processes; start fewer or raise limits.processes"}},
    {"can't create Thread", {NULL, "processes", "threads count as processes; start fewer or raise limits.processes"}},
    {"Resource temporarily unavailable",
     {NULL, "processes", "start fewer processes and threads; or raise limits.processes"}},
    {"pthread_create failed", {NULL, "processes", "threads count as processes; start fewer or raise limits.processes"}},
    {"unable to create native thread",
     {NULL, "processes", "threads count as processes; start fewer or raise limits.processes"}},
    {"Too many open files", {NULL, NULL, "close files that are no longer used; or raise limits.open_files"}},
    {"EMFILE", {NULL, NULL, "close files that are no longer used; or raise limits.open_files"}},
    {"JavaScript heap out of memory",
     {NULL, "memory", "the heap is sized from limits.memory_bytes; keep less in memory or raise it"}},
    {"OutOfMemoryError",
     {NULL, "memory", "the heap is sized from limits.memory_bytes; keep less in memory or raise it"}},
    {"Allowed memory size",
     {NULL, "memory", "the heap is sized from limits.memory_bytes; keep less in memory or raise it"}},
    {"Cannot allocate memory", {NULL, "memory", "keep less in memory; or raise limits.memory_bytes"}},
    {"std::bad_alloc", {NULL, "memory", "keep less in memory; or raise limits.memory_bytes"}},
    {"out of memory", {NULL, "memory", "keep less in memory; or raise limits.memory_bytes"}},
    {"Operation not permitted",
     {NULL, "permission", "the program runs without privileges in its cell, and some system calls are refused"}},
    {"EPERM",
     {NULL, "permission", "the program runs without privileges in its cell, and some system calls are refused"}},
    {"Permission denied",
     {NULL, "permission", "the program is the user cordon (1000): only /work, /tmp and /dev/shm are its own"}},
    {"EACCES",
     {NULL, "permission", "the program is the user cordon (1000): only /work, /tmp and /dev/shm are its own"}},
};

const struct advice *hint_for_message(const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        if (strcasestr(message, messages[i].text))
            return &messages[i].advice;
    return NULL;
}

static const char *const missing_modules[] = {
    "No module named '([^']+)'",
    "Cannot find (module|package) '([^']+)'",
    "cannot load such file -- ([^ ]+)",
    "cannot find package \"([^\"]+)\"",
    "(package|module) ([^ ]+) is not in",
    "no required module provides package ([^;: ]+)",
    "^([^ :]+): No such file or directory$",
    "Can't locate ([^ ]+) in @INC",
    "there is no package called .([A-Za-z0-9.]+).",
    "module '([^']+)' not found",
    "package ([^ ]+) does not exist",
    "maybe a missing crate `([^`]+)`",
};

char *hint_missing_module(const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(missing_modules); i++) {
        regex_t regex;
        regmatch_t groups[3];
        if (regcomp(&regex, missing_modules[i], REG_EXTENDED) != 0)
            continue;
        bool hit = regexec(&regex, message, 3, groups, 0) == 0;
        regfree(&regex);
        if (hit) {
            const regmatch_t *name = groups[2].rm_so >= 0 ? &groups[2] : &groups[1];
            return strndup(message + name->rm_so, (size_t)(name->rm_eo - name->rm_so));
        }
    }
    return NULL;
}

/* By the name shown in denials; the first pattern that fits. */
static const struct {
    const char *call;
    const char *hint;
} denied_calls[] = {
    {"connect(*", NO_NETWORK},
    {"sendto(*", NO_NETWORK},
    {"socket(AF_PACKET*", "raw packets are not available in a cell; loopback sockets are"},
    {"socket(AF_NETLINK*", "the network cannot be configured from inside a cell"},
    {"socket(*", "only Unix, IPv4 and IPv6 sockets are available in a cell"},
    {"ptrace*", "a cell has no debugging of processes; print or log instead"},
    {"process_vm_*", "a cell has no access to the memory of other processes"},
    {"*mount*", "the file systems of a cell are fixed; ask for a mount in the request"},
    {"pivot_root*", "the file systems of a cell are fixed"},
    {"chroot*", "the file systems of a cell are fixed; work beneath /work"},
    {"move_mount*", "the file systems of a cell are fixed; ask for a mount in the request"},
    {"fs*", "the file systems of a cell are fixed; ask for a mount in the request"},
    {"unshare*", "a cell cannot hold further namespaces; the program is isolated already"},
    {"setns*", "a cell cannot enter other namespaces"},
    {"clone*", "a cell cannot hold further namespaces; the program is isolated already"},
    {"bpf*", "kernel programs cannot be loaded from a cell"},
    {"perf_event_open*", "hardware counters are not available in a cell; measure time instead"},
    {"io_uring*", "io_uring is not available in a cell; use read, write, poll or epoll"},
    {"userfaultfd*", "page fault handling is not available in a cell"},
    {"keyctl*", "the kernel's key store is not available in a cell"},
    {"add_key*", "the kernel's key store is not available in a cell"},
    {"request_key*", "the kernel's key store is not available in a cell"},
    {"*_module*", "kernel modules cannot be loaded from a cell"},
    {"kexec*", "the machine cannot be controlled from a cell"},
    {"reboot*", "the machine cannot be controlled from a cell"},
    {"swap*", "the machine cannot be controlled from a cell"},
    {"*settime*", "the clock cannot be set from a cell"},
    {"adjtimex*", "the clock cannot be set from a cell"},
    {"clock_adjtime*", "the clock cannot be set from a cell"},
    {"sethostname*", "the host name of a cell is fixed"},
    {"setdomainname*", "the host name of a cell is fixed"},
    {"set*id*", "a cell has one user, cordon (1000); run as it"},
    {"mknod*", "devices cannot be made in a cell; named pipes can (mkfifo)"},
    {"ioctl(TIOCSTI)*", "input cannot be pushed into a terminal from a cell; pass stdin in the request"},
    {"open_by_handle_at*", "files can be opened by path only"},
    {"personality*", "the memory layout of a cell is fixed"},
};

const char *explain_denied_call(const char *what)
{
    for (size_t i = 0; i < ARRAY_LEN(denied_calls); i++)
        if (fnmatch(denied_calls[i].call, what, 0) == 0)
            return denied_calls[i].hint;
    return "this call is outside what programs in a cell may do";
}
