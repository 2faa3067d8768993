/* threat: 1.7-cpu
 * attack: spin in many short-lived processes, none of which reaches the limit alone
 * expect: status=cpu_limit; silent; ends<12s; cpu<3s
 * limits: --cpu 1s --cpus 2 --wall 15s
 * needs: cgroup
 * control: cpu
 */
#include "attack.h"

int main(void)
{
    for (int64_t end = now_ms() + 6000; now_ms() < end;) {
        for (int i = 0; i < 4; i++)
            if (!fork()) {
                int64_t stop = now_ms() + 200;
                while (now_ms() < stop)
                    continue;
                _exit(0);
            }
        while (wait(NULL) > 0)
            continue;
    }
    pwned("many processes spun for 6 s under a limit of 1 s");
    return 0;
}
