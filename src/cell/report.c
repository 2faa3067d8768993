/* Owns the table of steps and how a failure leaves the child. Async-signal-safe except for the two table look-ups,
 * which only the warden calls. */
#include "cell/report.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
    const char *name;
    enum control control;
} steps[STEP_COUNT] = {
    [STEP_NONE] = {"nothing", CONTROL_NONE},
    [STEP_CLONE] = {"create the namespaces", CONTROL_USERNS},
    [STEP_CGROUP_JOIN] = {"join the cgroup", CONTROL_CGROUP},
    [STEP_ID_MAPS] = {"wait for the id maps", CONTROL_USERNS},
    [STEP_IDENTITY] = {"change user and group", CONTROL_USERNS},
    [STEP_KEYRING] = {"start a session keyring", CONTROL_USERNS},
    [STEP_NETWORK] = {"create the network namespace", CONTROL_NETNS},
    [STEP_LOOPBACK] = {"bring the loopback interface up", CONTROL_NETNS},
    [STEP_NETWORK_BUFFERS] = {"bound the socket buffers", CONTROL_NETNS},
    [STEP_HOSTNAME] = {"set the host name", CONTROL_UTSNS},
    [STEP_PROPAGATION] = {"make the mounts private", CONTROL_MOUNTNS},
    [STEP_ROOT] = {"mount the root", CONTROL_MOUNTNS},
    [STEP_SYSTEM_FILES] = {"mount the system's files", CONTROL_MOUNTNS},
    [STEP_ETC] = {"make /etc", CONTROL_MOUNTNS},
    [STEP_DEVICES] = {"make /dev", CONTROL_MOUNTNS},
    [STEP_PROC] = {"mount /proc", CONTROL_MOUNTNS},
    [STEP_PROC_MASKS] = {"mask parts of /proc", CONTROL_MOUNTNS},
    [STEP_STORE] = {"mount the work directory", CONTROL_MOUNTNS},
    [STEP_REQUEST_MOUNT] = {"place a mount of the request", CONTROL_MOUNTNS},
    [STEP_PIVOT] = {"enter the new root", CONTROL_MOUNTNS},
    [STEP_ENTER] = {"enter the cell's namespaces", CONTROL_PIDNS},
    [STEP_RLIMITS] = {"set the resource limits", CONTROL_NONE},
    [STEP_CAPABILITIES] = {"drop all capabilities", CONTROL_CAPABILITIES},
    [STEP_NO_NEW_PRIVS] = {"set no_new_privs", CONTROL_NO_NEW_PRIVS},
    [STEP_HANDOVER] = {"take over the request", CONTROL_NONE},
    [STEP_FILES] = {"write the program's files", CONTROL_NONE},
    [STEP_STDIO] = {"connect the standard streams", CONTROL_NONE},
    [STEP_LANDLOCK] = {"restrict files with Landlock", CONTROL_LANDLOCK},
    [STEP_SECCOMP] = {"install the system call filter", CONTROL_SECCOMP},
    [STEP_REPORT] = {"report to the warden", CONTROL_NONE},
    [STEP_EXEC] = {"start the program", CONTROL_NONE},
};

const char *cell_step_name(enum cell_step step)
{
    return step < STEP_COUNT ? steps[step].name : "unknown step";
}

enum control cell_step_control(enum cell_step step)
{
    return step < STEP_COUNT ? steps[step].control : CONTROL_NONE;
}

int report_send(int socket, const struct cell_report *report, int fd)
{
    struct iovec iov = {.iov_base = (void *)report, .iov_len = sizeof *report};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    ssize_t n;
    do
        n = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

_Noreturn void report_fail(int socket, enum cell_step step, uint32_t detail)
{
    struct cell_report report = {.kind = REPORT_FAILED, .step = step, .error = errno, .detail = detail};
    report_send(socket, &report, -1);
    _exit(127);
}
