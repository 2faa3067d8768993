/* threat: 1.4-daemon
 * attack: leave daemons behind by double fork, new sessions and ignored hang-ups
 * expect: status=ok; ends<5s
 * control: pidns
 * bare: leftover
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 5; i++) {
        if (fork())
            continue;
        setsid();
        if (fork())
            _exit(0);
        setsid();
        signal(SIGHUP, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        chdir("/");
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        nap_ms(20000);
        _exit(0);
    }
    nap_ms(30);
    return held();
}
