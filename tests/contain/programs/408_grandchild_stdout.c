/* threat: 1.4-grandchild
 * attack: let a grandchild keep stdout and stderr open after the program has ended
 * expect: status=ok; ends<5s
 * limits: --wall 10s
 * control: pidns
 * bare: leftover
 */
#include "attack.h"

int main(void)
{
    if (!fork()) {
        setsid();
        if (!fork())
            nap_ms(20000);
        _exit(0);
    }
    wait(NULL);
    return held();
}
