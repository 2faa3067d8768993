/* threat: 1.4-init-signal
 * attack: find that init takes signals from the program
 * expect: status=ok
 * needs: signal-scope
 * control: landlock
 * bare: no process 1 of the host is left alone
 */
#include "attack.h"

int main(void)
{
    if (!kill(1, 0))
        pwned("init takes signals from here");
    return held();
}
