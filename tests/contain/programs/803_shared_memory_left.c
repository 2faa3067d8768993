/* threat: 1.8-shm sysv
 * attack: leave POSIX and SysV shared memory for the next run
 * expect: status=ok
 * stages: plant find
 * control: ipcns mountns
 * bare: pwned
 */
#include "attack.h"

#include <sys/ipc.h>
#include <sys/shm.h>

int main(int argc, char **argv)
{
    key_t key = (key_t)strtol(given("MARK_KEY"), NULL, 10);
    char name[64];
    snprintf(name, sizeof name, "/%s", given("MARK"));
    if (argc > 1 && !strcmp(argv[argc - 1], "plant")) {
        shm_open(name, O_CREAT | O_RDWR, 0666);
        shmget(key, 4096, IPC_CREAT | 0666);
        return held();
    }
    if (shm_open(name, O_RDWR, 0) >= 0) {
        pwned("the earlier run's shared memory is here");
        shm_unlink(name);
    }
    int id = shmget(key, 0, 0);
    if (id >= 0) {
        pwned("the earlier run's SysV segment is here");
        shmctl(id, IPC_RMID, NULL);
    }
    return held();
}
