/* threat: 1.4-vfork
 * attack: hide in the uninterruptible wait of vfork past the deadline
 * expect: status=wall_limit; signal=9; silent; ends<5s
 * limits: --wall 1s
 * control: wall
 * bare: no it only stays
 */
#include "attack.h"

int main(void)
{
    if (!vfork()) {
        nap_ms(6000);
        _exit(0);
    }
    return 0;
}
