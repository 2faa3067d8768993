/* threat: 1.9-exit
 * attack: let children and threads end with success in the program's place, then fail
 * expect: status=nonzero_exit; exit=9
 */
#include "attack.h"

#include <pthread.h>

static void *leave(void *unused)
{
    (void)unused;
    syscall(SYS_exit, 0);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        if (!fork())
            syscall(SYS_exit_group, 0);
        if (!vfork())
            _exit(0);
        pthread_t thread;
        if (!pthread_create(&thread, NULL, leave, NULL))
            pthread_join(thread, NULL);
    }
    nap_ms(100);
    while (wait(NULL) > 0)
        continue;
    held();
    return 9;
}
