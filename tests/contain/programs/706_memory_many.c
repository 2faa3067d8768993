/* threat: 1.7-memory-many
 * attack: take a gibibyte spread over many small processes
 * expect: status=memory_limit; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * needs: cgroup
 * control: memory
 */
#include "attack.h"

int main(void)
{
    for (int i = 0; i < 32; i++)
        if (!fork()) {
            gorge(32 * MIB, MAP_PRIVATE);
            nap_ms(3000);
            _exit(0);
        }
    nap_ms(2500);
    int killed = 0, status;
    while (wait(&status) > 0)
        killed += WIFSIGNALED(status);
    if (!killed)
        pwned("32 processes held a gibibyte under a limit of 64 MiB");
    return 0;
}
