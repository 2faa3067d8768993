/* threat: 1.7-sysv-ids
 * attack: use up the identifiers of SysV semaphores, queues and segments
 * expect: status=ok; ends<8s
 * control: ipcns
 * bare: sysv
 */
#include "attack.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(void)
{
    key_t key = (key_t)strtol(given("MARK_KEY"), NULL, 10);
    shmget(key, 4096, IPC_CREAT | 0600);
    semget(key, 1, IPC_CREAT | 0600);
    msgget(key, IPC_CREAT | 0600);
    if (getpid() < 1000)
        for (int i = 0; i < 2000; i++)
            if (semget(IPC_PRIVATE, 1, 0600) < 0 && msgget(IPC_PRIVATE, 0600) < 0 && shmget(IPC_PRIVATE, 4096, 0600) < 0)
                break;
    return held();
}
