/* threat: 1.4-ignore
 * attack: block and ignore every signal, then stay
 * expect: status=wall_limit; signal=9; silent; ends<5s
 * limits: --wall 1s
 * control: wall
 * bare: no it only stays
 */
#include "attack.h"

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
    for (int i = 0; i < 60; i++)
        nap_ms(100);
    return 0;
}
