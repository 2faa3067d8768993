/* threat: 1.7-memory-child
 * attack: let a child hit the memory limit and report success all the same
 * expect: status=memory_limit; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * needs: cgroup
 * control: memory
 */
#include "attack.h"

int main(void)
{
    pid_t child = fork();
    if (!child) {
        gorge(512 * MIB, MAP_PRIVATE);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
