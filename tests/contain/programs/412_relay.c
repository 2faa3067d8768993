/* threat: 1.4-relay
 * attack: run away from a kill loop: each process forks its heir and leaves at once
 * expect: status=ok; ends<6s
 * control: pidns
 * bare: leftover
 */
#include "attack.h"

int main(void)
{
    int64_t end = now_ms() + 8000;
    if (!fork()) {
        setsid();
        for (int fd = 0; fd < 8; fd++)
            close(fd);
        while (now_ms() < end) {
            if (fork() > 0)
                _exit(0);
            nap_ms(1);
        }
        _exit(0);
    }
    nap_ms(50);
    return held();
}
