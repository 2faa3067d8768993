/* threat: 1.1-devices
 * attack: open every device node that the cell shows except the harmless ones, and make new nodes
 * expect: status=ok
 * control: mountns capabilities own_uid
 * bare: pwned as root
 */
#include "attack.h"

#include <sys/sysmacros.h>

static bool harmless(const char *name)
{
    const char *const known[] = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i]))
            return true;
    return false;
}

int main(void)
{
    DIR *dev = bare() ? NULL : opendir("/dev"); /* opening a watchdog starts it */
    for (struct dirent *entry; dev && (entry = readdir(dev));) {
        char path[PATH_MAX];
        struct stat st;
        snprintf(path, sizeof path, "/dev/%s", entry->d_name);
        if (stat(path, &st) || (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)) || harmless(entry->d_name))
            continue;
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0) {
            pwned("%s (%u:%u) opened", path, major(st.st_rdev), minor(st.st_rdev));
            close(fd);
        }
    }
    const char *const named[] = {"/dev/mem", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/loop-control", "/dev/vda", "/dev/sda",
                                 "/dev/nvme0n1", "/dev/kmsg", "/dev/net/tun", "/dev/vsock", "/dev/userfaultfd", "/dev/cpu/0/msr"};
    for (size_t i = 0; i < sizeof named / sizeof *named && !bare(); i++)
        if (open(named[i], O_RDONLY | O_NONBLOCK) >= 0)
            pwned("%s opened", named[i]);
    const char *const spots[] = {".", "/tmp", "/dev", "/dev/shm"};
    for (size_t i = 0; i < (bare() ? 1 : sizeof spots / sizeof *spots); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/node-%d", spots[i], getpid());
        if (!mknod(path, S_IFBLK | 0600, makedev(254, 0)) || !mknod(path, S_IFCHR | 0600, makedev(1, 1))) {
            pwned("made the device node %s", path);
            unlink(path);
        }
    }
    return held();
}
