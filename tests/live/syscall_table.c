/* syscall_table [CALL...]: makes every system call from 0 to 600, or those given, and prints what the kernel said.
 * syscall_table i386 | x32: makes one getpid of that foreign ABI instead.
 *
 * It is run inside a cell and its output held against policy.golden (expected.py). Each call is made in a child of its
 * own, with an alarm. A CALL is NR or NR:INDEX=VALUE,... with zero for the arguments not named; a call for which none
 * is given gets arguments that are invalid in every kernel, so that an allowed call does no harm either.
 *
 * A line is the CALL and its outcome: an errno (0 for success), `ends`, `blocks`, `signal N` or `skipped`. */
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_CALL = 600, ALARM_US = 200000 };

struct call {
    long nr;
    long args[6];
};

/* Where -1 would not do: these have forms, whose plain case the golden table shows with zeros, or they take -1 for
 * something else (an unknown futex operation is ENOSYS; flags of -1 make a message queue). */
static const struct call special[] = {
#ifdef SYS_open
    {SYS_open, {-1, 0, 0}},
    {SYS_creat, {-1, 0}},
    {SYS_chmod, {-1, 0}},
#endif
    {SYS_openat, {-1, -1, 0, 0}},
    {SYS_fchmod, {-1, 0}},
    {SYS_fchmodat, {-1, -1, 0}},
    {452 /* fchmodat2 */, {-1, -1, 0, -1}},
    {SYS_ioctl, {0}},
    {SYS_fcntl, {-1, 0}},
    {SYS_inotify_add_watch, {-1, -1, 0}},
    {SYS_prlimit64, {0}},
    {SYS_socket, {0}},
    {SYS_socketpair, {0}},
    {SYS_sendto, {0}},
    {SYS_setsockopt, {0}},
    {SYS_clone, {0}},
    {SYS_mknodat, {0}},
    {SYS_prctl, {0}},
    {SYS_personality, {0}},
    {SYS_futex, {0}},
    {SYS_msgget, {0x7ffffffe, 0}},
    {SYS_shmget, {-1, 0, 0}},
    {SYS_mmap, {-1, 0, 0, 0}},
    {SYS_msync, {-1, -1, 0}},
    {SYS_memfd_create, {-1, 0}},
#ifdef SYS_mknod
    {SYS_mknod, {0}},
#endif
};

/* No wrapper: after vfork the child would return through the parent's stack frame. A new process ends at once. */
static inline __attribute__((always_inline)) long raw_call(const struct call *call)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = call->args[3];
    register long r8 __asm__("r8") = call->args[4];
    register long r9 __asm__("r9") = call->args[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(call->nr), "D"(call->args[0]), "S"(call->args[1]), "d"(call->args[2]), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    if (result == 0 && (call->nr == SYS_fork || call->nr == SYS_vfork || call->nr == SYS_clone))
        __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = call->nr;
    register long x0 __asm__("x0") = call->args[0];
    register long x1 __asm__("x1") = call->args[1];
    register long x2 __asm__("x2") = call->args[2];
    register long x3 __asm__("x3") = call->args[3];
    register long x4 __asm__("x4") = call->args[4];
    register long x5 __asm__("x5") = call->args[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    if (x0 == 0 && call->nr == SYS_clone) {
        x8 = SYS_exit;
        __asm__ volatile("svc 0" : : "r"(x8), "r"(x0) : "memory");
    }
    return x0;
#else
#error "syscall_table knows x86-64 and aarch64"
#endif
}

static bool parse_call(const char *text, struct call *call)
{
    char *at;
    call->nr = strtol(text, &at, 10);
    memset(call->args, 0, sizeof call->args);
    bool ok = at != text && (*at == ':' || !*at);
    while (ok && *at) {
        unsigned index = (unsigned)(at[1] - '0');
        ok = index < ARRAY_LEN(call->args) && at[2] == '=';
        if (ok)
            call->args[index] = (long)strtoull(at + 3, &at, 0);
        ok = ok && (*at == ',' || !*at);
    }
    return ok;
}

static void harmless(long nr, struct call *call)
{
    *call = (struct call){nr, {-1, -1, -1, -1, -1, -1}};
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (special[i].nr == nr)
            *call = special[i];
}

/* The answer goes through shared descriptors only; a call may have closed, replaced or unmapped anything else. */
static _Noreturn void make_call(const struct call *call, int answer)
{
    const struct itimerval limit = {.it_value = {.tv_usec = ALARM_US}};
    setitimer(ITIMER_REAL, &limit, NULL);
    long result = raw_call(call);
    int code = result < 0 && result > -4096 ? (int)-result : 0;
    if (write(answer, &code, sizeof code) != sizeof code)
        _exit(1);
    _exit(0);
}

static void print_outcome(const char *label, int status, int answer)
{
    int code;
    if (read(answer, &code, sizeof code) == sizeof code)
        printf("%s %d\n", label, code);
    else if (WIFEXITED(status))
        printf("%s ends\n", label);
    else if (WTERMSIG(status) == SIGALRM)
        printf("%s blocks\n", label);
    else
        printf("%s signal %d\n", label, WTERMSIG(status));
}

static int try_call(const char *label, const struct call *call)
{
    int ends[2];
    int status;
    if (call->nr == SYS_rt_sigreturn) {
        printf("%s skipped\n", label);
        return 0;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        make_call(call, ends[1]);
    close(ends[1]);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        close(ends[0]);
        return -1;
    }
    print_outcome(label, status, ends[0]);
    close(ends[0]);
    return 0;
}

/* Call 0 of the table acts on descriptor 0, and fchmod(0, 0) of a caller's /dev/null would be felt by everybody. */
static int own_stdin(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) || dup2(ends[0], 0) < 0)
        return -1;
    return 0;
}

static int foreign(const char *abi)
{
#if defined(__x86_64__)
    enum { I386_GETPID = 20, X32_BIT = 0x40000000 };
    long result = -ENOSYS;
    if (!strcmp(abi, "i386"))
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(I386_GETPID) : "memory");
    else
        result = raw_call(&(struct call){SYS_getpid | X32_BIT, {0}});
    printf("%s %s\n", abi, result > 0 ? "answered" : "failed");
    return 0;
#else
    printf("%s skipped\n", abi);
    return 0;
#endif
}

int main(int argc, char **argv)
{
    struct call call;
    if (argc == 2 && (!strcmp(argv[1], "i386") || !strcmp(argv[1], "x32")))
        return foreign(argv[1]);
    bool failed = own_stdin() != 0;
    for (int i = 1; i < argc && !failed; i++) {
        if (!parse_call(argv[i], &call)) {
            fprintf(stderr, "syscall_table: '%s' is no call\n", argv[i]);
            return 2;
        }
        if (!strchr(argv[i], ':'))
            harmless(call.nr, &call);
        failed = try_call(argv[i], &call) != 0;
    }
    for (long nr = 0; argc == 1 && nr <= LAST_CALL && !failed; nr++) {
        char label[16];
        snprintf(label, sizeof label, "%ld", nr);
        harmless(nr, &call);
        failed = try_call(label, &call) != 0;
    }
    if (failed)
        perror("syscall_table");
    return failed;
}
