/* threat: 1.6-mount 1.7-mount-count
 * attack: mount by the old and the new interface, pivot the root, and pile up mounts
 * expect: status=ok; denials~mount; denials~fsopen
 * control: seccomp
 * bare: pwned as root
 */
#include "attack.h"

#include <sys/mount.h>

int main(void)
{
    mkdir("spot", 0700);
    for (int i = 0; i < 20; i++)
        if (!mount("none", "spot", "tmpfs", 0, "size=4k")) {
            pwned("mounted a tmpfs");
            umount2("spot", MNT_DETACH);
        }
    if (!mount("/proc", "spot", NULL, MS_BIND, NULL)) {
        pwned("bound /proc");
        umount2("spot", MNT_DETACH);
    }
    const char *const kinds[] = {"tmpfs", "proc", "cgroup2", "ext4", "overlay", "fuse"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        long fd = syscall(SYS_fsopen, kinds[i], 0);
        if (fd >= 0) {
            pwned("fsopen(%s)", kinds[i]);
            reached("fsconfig", syscall(SYS_fsconfig, fd, 99, NULL, NULL, 0));
            close((int)fd);
        }
    }
    reached("open_tree", syscall(SYS_open_tree, AT_FDCWD, ".", 1));
    reached("fspick", syscall(SYS_fspick, AT_FDCWD, "/proc", 0));
    reached("move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0));
    reached("fsmount", syscall(SYS_fsmount, -1, 0, 0));
    return held();
}
