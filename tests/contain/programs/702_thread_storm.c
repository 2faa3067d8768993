/* threat: 1.7-threads
 * attack: start threads until it fails
 * expect: status=process_limit; procs<400
 * without-cgroup: status=process_limit|nonzero_exit; procs<400
 * limits: --processes 50 --wall 5s
 * control: processes
 */
#include "attack.h"

#include <pthread.h>

static void *stay(void *unused)
{
    (void)unused;
    nap_ms(4000);
    return NULL;
}

int main(void)
{
    int made = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_t thread;
    while (made < 1500 && !pthread_create(&thread, &small, stay, NULL))
        made++;
    nap_ms(100);
    say("made %d\n", made);
    if (made > 50)
        pwned("%d threads under a limit of 50", made);
    held();
    _exit(1);
}
