/* threat: 1.4-sessions
 * attack: sleep past the deadline with children in sessions and process groups of their own
 * expect: status=wall_limit; signal=9; silent; ends<5s
 * limits: --wall 1s
 * control: wall
 * bare: no it only stays
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 10; i++)
        if (!fork()) {
            if (i % 2)
                setsid();
            else
                setpgid(0, 0);
            nap_ms(6000);
            _exit(0);
        }
    nap_ms(6000);
    return 0;
}
