/* threat: 1.9-signal
 * attack: die by SIGKILL of one's own, to be taken for an OOM kill or a limit
 * expect: status=signaled; signal=9
 */
#include "attack.h"

int main(void)
{
    held();
    kill(getpid(), SIGKILL);
    return 0;
}
