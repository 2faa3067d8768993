/* threat: 1.7-forks
 * attack: fork until it fails, every child staying
 * expect: status=process_limit; procs<400
 * without-cgroup: status=process_limit|nonzero_exit; procs<400
 * limits: --processes 50 --wall 5s
 * control: processes
 */
#include "attack.h"

int main(void)
{
    int made = 0;
    while (made < 1500) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (!child) {
            nap_ms(4000);
            _exit(0);
        }
        made++;
    }
    nap_ms(100);
    say("made %d\n", made);
    if (made > 50)
        pwned("%d processes under a limit of 50", made);
    held();
    return 1;
}
