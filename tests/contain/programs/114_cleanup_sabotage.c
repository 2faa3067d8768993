/* threat: 1.1-cleanup
 * attack: leave what breaks a careless clean-up: a tree deeper than PATH_MAX, mode 000, fifos, sockets, immutable flags, odd names
 * expect: status=ok; ends<6s
 * bare: no it only leaves litter
 */
#include "attack.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

int main(void)
{
    int top = open(".", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000; i++)
        if (mkdir("deeper-than-any-path", 0700) || chdir("deeper-than-any-path"))
            break;
    fchdir(top);
    mkdir("sealed", 0700);
    close(open("sealed/inside", O_CREAT | O_WRONLY, 0600));
    chmod("sealed/inside", 0);
    chmod("sealed", 0);
    mkfifo("fifo", 0600);
    symlink("/", "root");
    symlink("loop", "loop");
    symlink(bait("shared"), "shared");
    close(open("-rf *\n\t\xff$(touch oops)", O_CREAT | O_WRONLY, 0600));
    close(open("/tmp/-rf", O_CREAT | O_WRONLY, 0600));
    close(open("/dev/shm/left", O_CREAT | O_WRONLY, 0600));
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0)
        bind(fd, (struct sockaddr *)&address, sizeof address);
    int file = open("immutable", O_CREAT | O_RDWR, 0600);
    long flags = FS_IMMUTABLE_FL;
    ioctl(file, FS_IOC_SETFLAGS, &flags);
    chmod(".", 0);
    return held();
}
