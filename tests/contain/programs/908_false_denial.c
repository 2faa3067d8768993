/* threat: 1.9-signal
 * attack: die by SIGSYS of one's own, to be taken for a kill by policy
 * expect: status=signaled; signal=31
 */
#include "attack.h"

int main(void)
{
    held();
    raise(SIGSYS);
    return 0;
}
