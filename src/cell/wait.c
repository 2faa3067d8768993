/* What a child waits for: a byte, the message with which it joins its control group, the one that tells what it is to
 * be. End of file means that whoever should have sent it is gone, and ends the process. */
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/steps.h"

void wait_for_byte(int fd)
{
    char byte;
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(0);
}

int wait_for_fd(int socket)
{
    char byte;
    size_t count = 0;
    int fd;
    if (fd_receive(socket, &byte, 1, &fd, 1, &count) != 1 || count != 1)
        _exit(0);
    return fd;
}

void wait_to_join(int report)
{
    struct join_message message;
    int fds[CELL_CGROUP_FILES_MAX];
    size_t count = 0;
    ssize_t n = fd_receive(report, &message, sizeof message, fds, ARRAY_LEN(fds), &count);
    if (n == 0)
        _exit(0);
    if (n != sizeof message || message.cgroup_files != count || cgroup_join(fds, count) < 0)
        report_fail(report, STEP_CGROUP_JOIN, 0);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

void wait_for_handover(int report, struct handover_message *message, struct plan *plan, int streams[STREAM_COUNT],
                       int *mount_fds)
{
    int fds[1 + STREAM_COUNT + PLAN_MOUNT_MAX];
    size_t count = 0;
    ssize_t n = fd_receive(report, message, sizeof *message, fds, ARRAY_LEN(fds), &count);
    if (n == 0)
        _exit(0);
    if (n != sizeof *message || count < 1 || plan_map(fds[0], plan) < 0)
        report_fail(report, STEP_HANDOVER, 0);
    close(fds[0]);
    size_t stream_count = plan->value_pipe ? STREAM_COUNT : STREAM_VALUE;
    if (count != 1 + stream_count + message->mount_count || message->mount_count > plan->mount_count) {
        errno = EBADMSG;
        report_fail(report, STEP_HANDOVER, 1);
    }
    streams[STREAM_VALUE] = -1;
    for (size_t i = 0; i < stream_count; i++)
        streams[i] = fds[1 + i];
    for (size_t i = 0; i < message->mount_count; i++)
        mount_fds[i] = fds[1 + stream_count + i];
}
