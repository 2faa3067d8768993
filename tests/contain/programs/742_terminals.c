/* threat: 1.7-terminals
 * attack: have kernel threads echo and edit lines for eight pseudo-terminals, far beyond the share of processors
 * expect: status=ok; kernel-cpu<0.7
 * limits: --wall 10s --cpus 0.1
 * control: mountns
 */
#include "attack.h"

#include <termios.h>

/* A line that is erased and echoed again and again: hundreds of bytes of work for each byte written. */
static void feed(int master, int64_t end)
{
    char text[4096], answer[65536];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 256 == 255 ? 'U' - '@' : (char)('a' + i % 26);
    while (now_ms() < end) {
        if (write(master, text, sizeof text) < 0)
            nap_ms(1);
        while (read(master, answer, sizeof answer) > 0)
            ;
    }
}

static int open_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), slave;
    struct termios mode;
    if (master < 0 || grantpt(master) || unlockpt(master) || (slave = open(ptsname(master), O_RDWR | O_NOCTTY)) < 0)
        return -1;
    if (tcgetattr(slave, &mode))
        return -1;
    mode.c_lflag |= ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN;
    tcsetattr(slave, TCSANOW, &mode);
    return master;
}

int main(void)
{
    int64_t end = now_ms() + 3000;
    for (int i = 0; i < 8; i++) {
        int master = open_terminal();
        if (master < 0)
            return held();
        if (fork() == 0) {
            feed(master, end);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return held();
}
