/* threat: 1.2-special
 * attack: leave fifos, sockets, directories and unreadable files under collected names, to hang or fail the collector
 * expect: status=ok; files~good.txt; ends<6s
 * limits: --collect *.txt
 * bare: no files are collected only from a cell
 */
#include "attack.h"

int main(void)
{
    int good = open("good.txt", O_CREAT | O_WRONLY, 0600);
    if (write(good, "good\n", 5) != 5)
        return 1;
    mkfifo("fifo.txt", 0666);
    if (!fork()) {
        close(1);
        close(2);
        int fd = open("fifo.txt", O_RDWR);
        for (;;)
            nap_ms(fd);
    }
    mkdir("directory.txt", 0777);
    close(open("sealed.txt", O_CREAT | O_WRONLY, 0));
    symlink("loop.txt", "loop.txt");
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket.txt"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0)
        bind(fd, (struct sockaddr *)&address, sizeof address);
    return held();
}
