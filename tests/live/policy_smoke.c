/* policy_smoke [--unheard] COMMAND...: runs a command under the compiled policy and nothing else, answering its
 * notifications as the warden would, and lists on stderr what was refused or observed. It shows whether a real program
 * lives with the policy without a cell round it. Ends with the command's own status; 125 is a fault of this program. */
#include "base/cleanup.h"
#include "cell/policy.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

enum { FAULT = 125, MAX_SEEN = 64 };

static struct {
    const struct policy_notice *notice;
    unsigned count;
} seen[MAX_SEEN];

static int fault(const char *step)
{
    fprintf(stderr, "policy_smoke: %s: %s\n", step, strerror(errno));
    return FAULT;
}

static int send_fd(int socket, int fd)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_fd(int socket)
{
    char byte;
    int fd = -1;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}

static int install(unsigned which, unsigned long flags)
{
    const struct policy_filter *filter = &policy_filters[which];
    struct sock_fprog program = {(unsigned short)filter->length, (struct sock_filter *)filter->code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static _Noreturn void child(int socket, bool unheard, char **command)
{
    int listener = -1;
    if (unheard) {
        if (install(0, 0))
            _exit(fault("install"));
    } else {
        listener = install(POLICY_HEARD, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
        if (listener < 0 || send_fd(socket, listener))
            _exit(fault("install"));
        close(listener);
    }
    close(socket);
    execvp(command[0], command);
    _exit(fault(command[0]));
}

static void record(const struct policy_notice *notice)
{
    for (unsigned i = 0; i < MAX_SEEN; i++) {
        if (!seen[i].notice || seen[i].notice == notice) {
            seen[i].notice = notice;
            seen[i].count++;
            return;
        }
    }
}

static void answer(int listener, pid_t cell)
{
    struct seccomp_notif request = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
        return;
    struct seccomp_notif_resp response = {.id = request.id, .error = -EPERM};
    uint64_t args[6];
    memcpy(args, request.data.args, sizeof args);
    const struct policy_notice *notice = policy_find(request.data.arch == NATIVE_ARCH ? request.data.nr : -1, args);
    if (!notice) {
        fprintf(stderr, "policy_smoke: no row for call %d\n", request.data.nr);
    } else {
        record(notice);
        if (notice->action == POLICY_KILL)
            kill(cell, SIGKILL);
        else if (notice->action == POLICY_REFUSE)
            response.error = -notice->refusal;
        else
            response.error = 0;
        if (notice->action == POLICY_OBSERVE || notice->action == POLICY_TELL)
            response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Daemons that outlive the command keep the listener alive; they are not waited for. */
static int supervise(int listener, pid_t cell)
{
    int status;
    struct pollfd fd = {.fd = listener, .events = POLLIN};
    for (;;) {
        pid_t ended = waitpid(cell, &status, WNOHANG);
        if (ended)
            return ended == cell ? status : -1;
        if (poll(&fd, 1, 10) > 0 && fd.revents & POLLIN)
            answer(listener, cell);
        else if (fd.revents & POLLHUP)
            fd.fd = -1;
    }
}

static void report(void)
{
    static const char *const actions[] = {
        [POLICY_REFUSE] = "refused", [POLICY_OBSERVE] = "observed", [POLICY_TELL] = "told", [POLICY_KILL] = "killed"};
    for (unsigned i = 0; i < MAX_SEEN && seen[i].notice; i++)
        fprintf(stderr, "policy_smoke: %s %s x%u\n", actions[seen[i].notice->action], seen[i].notice->name,
                seen[i].count);
}

int main(int argc, char **argv)
{
    bool unheard = argc > 1 && !strcmp(argv[1], "--unheard");
    char **command = argv + 1 + unheard;
    int pair[2];
    if (argc < 2 || !*command) {
        fputs("usage: policy_smoke [--unheard] COMMAND...\n", stderr);
        return FAULT;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return fault("socketpair");
    pid_t cell = fork();
    if (cell < 0)
        return fault("fork");
    if (!cell)
        child(pair[1], unheard, command);
    close(pair[1]);
    auto_close int listener = unheard ? -1 : receive_fd(pair[0]);
    int status = supervise(listener, cell);
    close(pair[0]);
    report();
    if (status < 0)
        return fault("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
