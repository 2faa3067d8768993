/* What a child waits for: a byte, or the message with which it joins its control group. End of file means that whoever
 * should have sent it is gone, and ends the process. */
#include <errno.h>
#include <unistd.h>

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

void wait_at_gate(int gate, int namespaces[2])
{
    char byte;
    size_t count = 0;
    if (fd_receive(gate, &byte, 1, namespaces, 2, &count) != 1 || count != 2)
        _exit(0);
}

void wait_to_join(int report, int *others, size_t *other_count)
{
    struct join_message message;
    int fds[CELL_CGROUP_FILES_MAX + PLAN_MOUNT_MAX];
    size_t count = 0;
    ssize_t n = fd_receive(report, &message, sizeof message, fds, CELL_CGROUP_FILES_MAX + PLAN_MOUNT_MAX, &count);
    if (n == 0)
        _exit(0);
    if (n != sizeof message || message.cgroup_files > count || message.cgroup_files > CELL_CGROUP_FILES_MAX ||
        cgroup_join(fds, message.cgroup_files) < 0)
        report_fail(report, STEP_CGROUP_JOIN, 0);
    for (size_t i = 0; i < message.cgroup_files; i++)
        close(fds[i]);
    *other_count = count - message.cgroup_files;
    for (size_t i = 0; i < *other_count; i++)
        others[i] = fds[message.cgroup_files + i];
}
