/* threat: 1.7-memory swap
 * attack: take a gibibyte in one process
 * expect: status=memory_limit; signal=9; silent; mem<400m
 * without-cgroup: status=memory_limit|nonzero_exit|signaled; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * control: memory
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 64; i++)
        if (!gorge(16 * MIB, MAP_PRIVATE))
            return 1;
    nap_ms(300);
    pwned("held a gibibyte under a limit of 64 MiB");
    return 0;
}
