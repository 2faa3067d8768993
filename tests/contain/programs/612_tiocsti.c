/* threat: 1.6-tiocsti
 * attack: type into the caller's terminal with TIOCSTI and TIOCLINUX, through stdio, /dev/tty and /dev/console
 * expect: status=ok; denials~TIOCSTI
 * probe: terminal
 * control: seccomp
 * bare: typed
 */
#include "attack.h"

#include <sys/ioctl.h>
#include <termios.h>

static void type(int fd, const char *where)
{
    for (const char *at = "touch pwned\n"; *at; at++)
        if (!ioctl(fd, TIOCSTI, at))
            pwned("typed into %s", where);
    char select = 2;
    if (!ioctl(fd, TIOCLINUX, &select))
        pwned("TIOCLINUX on %s", where);
    if (isatty(fd))
        pwned("%s is the caller's terminal", where);
}

int main(void)
{
    if (bare()) { /* no terminal but the judge's own */
        type(0, "stdin");
        return held();
    }
    for (int fd = 0; fd < 16; fd++) {
        char where[32];
        snprintf(where, sizeof where, "descriptor %d", fd);
        type(fd, where);
    }
    const char *const paths[] = {"/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/dev/pts/1", "/dev/pts/2"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        int fd = open(paths[i], O_RDWR | O_NOCTTY | O_NONBLOCK);
        if (fd >= 0)
            type(fd, paths[i]);
    }
    return held();
}
