/* threat: 1.1-inherited-fd
 * attack: use every descriptor that the caller of cordon left open, directories with openat("..") too
 * expect: status=ok
 * control: close_fds
 * bare: secret
 */
#include "attack.h"

int main(void)
{
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        char link[64], target[PATH_MAX] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof target - 1) < 0)
            target[0] = 0;
        pwned("descriptor %d is open: %s", fd, target);
        spill_fd(fd);
        const char *const names[] = {"world.txt", "../world.txt", "../../../../../../etc/hostname"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            int file = openat(fd, names[i], O_RDONLY);
            if (file >= 0)
                spill_fd(file);
        }
    }
    return held();
}
