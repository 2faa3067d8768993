/* The threads of an interpreter, kept through a fork. fork() copies only the thread that calls it; V8's workers and
 * libuv's loops would be missing, what they held locked would stay locked, and joining them at exit would never end.
 * Here each thread is stopped by a signal. The kernel writes all of its registers on its own stack for the handler;
 * memory is copied with them, so in the copy a new thread with the same stack and thread pointer needs only to
 * "return from the handler" to go on where the old one was. What a thread holds locked it holds in the copy too, and
 * lets go. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "zygote/proc.h"
#include "zygote/thread.h"
#include "zygote/threads.h"

#if defined(__x86_64__)

#define THREADS_MAX 64

/* The C library's own signal for setuid(). No thread of it ever blocks it, whatever else it blocks. */
#define PARK_SIGNAL 33

#define KERNEL_SA_RESTORER 0x04000000

struct kernel_sigaction {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

struct parked {
    void *context; /* the kernel's record of the registers, on the thread's stack */
    struct thread_record record;
};

static struct parked threads[THREADS_MAX];
static atomic_uint entered, ready;
static struct kernel_sigaction previous;

static long kernel_sigaction(int signal, const struct kernel_sigaction *action, struct kernel_sigaction *old)
{
    return syscall(SYS_rt_sigaction, signal, action, old, sizeof action->mask);
}

__asm__(".text\n"
        ".type zygote_sigreturn, @function\n"
        "zygote_sigreturn:\n"
        "    mov $15, %eax\n" /* rt_sigreturn */
        "    syscall\n"
        "    hlt\n"
        ".size zygote_sigreturn, .-zygote_sigreturn\n");
void zygote_sigreturn(void) __attribute__((visibility("hidden")));

/* A stopped thread never goes on here: only its copies do. */
static void park(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    unsigned at = atomic_fetch_add(&entered, 1);
    if (at < THREADS_MAX) {
        struct parked *self = &threads[at];
        self->context = context;
        thread_note(&self->record);
        if (self->record.tid_address && self->record.robust_list)
            atomic_fetch_add(&ready, 1);
    }
    for (;;)
        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

struct look {
    pid_t known[THREADS_MAX];
    unsigned known_count;
    unsigned others; /* besides the caller, by the last look */
};

/* Signals a thread that no earlier look found. */
static int signal_other(void *context, int tid)
{
    struct look *look = context;
    if (tid == getpid())
        return 0;
    look->others++;
    for (unsigned i = 0; i < look->known_count; i++)
        if (look->known[i] == tid)
            return 0;
    if (look->known_count == THREADS_MAX)
        return -E2BIG;
    look->known[look->known_count++] = tid;
    syscall(SYS_tgkill, getpid(), tid, PARK_SIGNAL);
    return 0;
}

int threads_park(void)
{
    struct kernel_sigaction action = {.handler = park,
                                      .flags = SA_SIGINFO | SA_RESTART | KERNEL_SA_RESTORER,
                                      .restorer = zygote_sigreturn,
                                      .mask = ~UINT64_C(0)};
    if (kernel_sigaction(PARK_SIGNAL, &action, &previous) < 0)
        return -errno;

    /* A thread may have been making another one: done when a look finds none that is not stopped. */
    struct look look = {.known_count = 0};
    for (int tries = 0; tries < 2000; tries++) {
        unsigned stopped = atomic_load(&ready);
        look.others = 0;
        int r = proc_each("/proc/self/task", signal_other, &look);
        if (r < 0)
            return r;
        if (look.others == stopped)
            return 0;
        usleep(500);
    }
    return -ETIMEDOUT;
}

/* First and last thing a new thread does: what the kernel knows of a thread besides its registers, then back to where
 * it was. */
static _Noreturn void resume(const struct parked *self)
{
    thread_register(&self->record);
    __asm__ volatile("mov %0, %%rsp\n"
                     "jmp zygote_sigreturn\n" ::"r"(self->context)
                     : "memory");
    __builtin_unreachable();
}

static long make_thread(const struct parked *thread)
{
    const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    /* Below the record are only the frames of park(), which nobody comes back to. */
    uintptr_t stack = ((uintptr_t)thread->context - 256) & ~(uintptr_t)15;
    register long nr __asm__("rax") = SYS_clone;
    register int *parent_tid __asm__("rdx") = thread->record.tid_address;
    register int *child_tid __asm__("r10") = thread->record.tid_address;
    register void *tls __asm__("r8") = thread->record.tls;
    register const struct parked *self __asm__("r12") = thread;
    register void (*start)(const struct parked *) __asm__("r13") = resume;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "xor %%ebp, %%ebp\n"
                     "mov %%r12, %%rdi\n"
                     "call *%%r13\n"
                     "1:\n"
                     : "+r"(nr)
                     : "D"(flags), "S"(stack), "r"(parent_tid), "r"(child_tid), "r"(tls), "r"(self), "r"(start)
                     : "rcx", "r11", "memory", "cc");
    return nr;
}

int threads_resume(void)
{
    if (kernel_sigaction(PARK_SIGNAL, &previous, NULL) < 0)
        return -errno;
    unsigned count = atomic_load(&ready);
    for (unsigned i = 0; i < count; i++) {
        long tid = make_thread(&threads[i]);
        if (tid < 0)
            return (int)tid;
    }
    return 0;
}

#else

int threads_park(void)
{
    return -ENOSYS;
}

int threads_resume(void)
{
    return -ENOSYS;
}

#endif
