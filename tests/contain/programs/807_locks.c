/* threat: 1.8-locks
 * attack: signal to another run by locks on files that both see: the shared /usr and namespace files
 * expect: status=ok
 * undefended: locks on files of a read-only tree that all cells share reach from cell to cell
 * stages: hold & try
 * control: -
 * bare: pwned
 */
#include "attack.h"

#include <sys/file.h>

static const char *const files[] = {"/usr/bin/env", "/usr/bin/bash", "/etc/passwd", "/usr/lib/os-release", "/proc/self/ns/time", "/proc/self/ns/user",
                                    "/proc/version", "/dev/null"};

int main(int argc, char **argv)
{
    bool hold = argc > 1 && !strcmp(argv[argc - 1], "hold");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = open(files[i], O_RDONLY);
        if (fd < 0)
            continue;
        struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
        if (hold) {
            flock(fd, LOCK_EX | LOCK_NB);
            fcntl(fd, F_SETLK, &range);
            continue;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
            pwned("another run's flock on %s is felt", files[i]);
        range.l_type = F_WRLCK;
        if (!fcntl(fd, F_GETLK, &range) && range.l_type != F_UNLCK)
            pwned("another run's record lock on %s is felt", files[i]);
    }
    if (hold) {
        say("ready\n");
        nap_ms(1500);
    }
    return held();
}
