/* Forking a started interpreter into slots. Loaded by the interpreter itself; the one function is called once and
 * returns in every process that was forked.
 *
 * A request comes with the namespaces of a slot. Entering its user namespace is for good, and only who has entered it
 * may enter its pid namespace, so a helper that shares this process's memory goes first and forks the program from
 * there. Both are the warden's children, not this process's (CLONE_PARENT). */
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell.h"
#include "cell/sys.h"
#include "zygote/environment.h"
#include "zygote/memory.h"
#include "zygote/serve.h"
#include "zygote/thread.h"

bool zygote_is_awaited;

/* What the helper works on; it shares this memory while the zygote sleeps. */
struct request {
    const struct enter_message *message;
    const int *fds;
    struct thread_record thread;
    jmp_buf forked;
    pid_t pid;
    int error;
};

static int help(void *context)
{
    struct request *request = context;
    const int *fds = request->fds;
    if (setns(fds[SLOT_USER], CLONE_NEWUSER) == 0 && setns(fds[SLOT_PID], CLONE_NEWPID) == 0) {
        struct clone_args args = {.flags = CLONE_PARENT};
        if (request->thread.tid_address) {
            args.flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
            args.child_tid = (uint64_t)(uintptr_t)request->thread.tid_address;
        }
        if (request->message->into_cgroup) {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = (uint64_t)fds[SLOT_NAMESPACES];
        }
        request->pid = sys_clone3(&args, sizeof args);
        if (request->pid == 0)
            longjmp(request->forked, 1);
    }
    request->error = errno;
    _exit(0);
}

static bool has_program(int wait_ms)
{
    return poll(&(struct pollfd){.fd = CELL_HANDOVER_FD, .events = POLLIN}, 1, wait_ms) > 0;
}

int zygote_serve(int socket)
{
    static char stack[64 << 10] __attribute__((aligned(64)));
    static struct request request;
    static struct enter_message message;
    static int fds[ENTER_FDS_MAX];
    struct zygote_answer answer = {0};
    thread_note(&request.thread);
    environment_forget_start();
    memory_condense();
    for (;;) {
        if (fd_send(socket, &answer, sizeof answer, NULL, 0) < 0)
            return 1;
        size_t count = 0;
        if (fd_receive(socket, &message, sizeof message, fds, ENTER_FDS_MAX, &count) != sizeof message)
            return 1;
        request.message = &message;
        request.fds = fds;
        request.pid = -1;
        request.error = 0;
        if (setjmp(request.forked)) {
            thread_register(&request.thread);
            cell_forked_main(&message, fds);
            zygote_is_awaited = message.wait_ms && has_program((int)message.wait_ms);
            return 0;
        }
        int helper = clone(help, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PARENT, &request);
        answer = (struct zygote_answer){.number = message.number,
                                        .helper = helper,
                                        .pid = request.pid,
                                        .error = helper < 0 ? errno : request.error};
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
}
