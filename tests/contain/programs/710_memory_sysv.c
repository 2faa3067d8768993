/* threat: 1.7-sysv
 * attack: take memory as SysV segments that outlive their makers
 * expect: status=ok|memory_limit|nonzero_exit; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * needs: cgroup
 * control: memory ipcns
 */
#include "attack.h"

#include <sys/ipc.h>
#include <sys/shm.h>

int main(void)
{
    size_t taken = 0;
    for (int i = 0; i < 32; i++) {
        int id = shmget(IPC_PRIVATE, 16 * MIB, IPC_CREAT | 0600);
        char *memory = id >= 0 ? shmat(id, NULL, 0) : (char *)-1;
        if (memory == (char *)-1)
            continue;
        memset(memory, 1, 16 * MIB);
        taken += 16 * MIB;
        shmdt(memory);
    }
    if (taken > 128 * MIB)
        pwned("held %zu MiB of SysV memory", taken / MIB);
    return 0;
}
