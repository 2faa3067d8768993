/* threat: 1.7-shared-anonymous
 * attack: take shared anonymous memory and leave it to children
 * expect: status=memory_limit; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * needs: cgroup
 * control: memory
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 32; i++)
        if (!gorge(32 * MIB, MAP_SHARED))
            return 1;
    pwned("held a gibibyte of shared memory");
    return 0;
}
