/* threat: 1.4-stop
 * attack: stop oneself and all children, where a polite signal changes nothing
 * expect: status=wall_limit; signal=9; silent; ends<5s
 * limits: --wall 1s
 * control: wall
 * bare: no it only stays
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 5; i++)
        if (!fork())
            raise(SIGSTOP);
    alarm(6);
    raise(SIGSTOP);
    return 0;
}
