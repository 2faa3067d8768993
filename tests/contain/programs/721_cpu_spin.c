/* threat: 1.7-cpu
 * attack: spin for ever, with the signals of a CPU limit ignored
 * expect: status=cpu_limit; silent; ends<9s
 * limits: --cpu 1s --wall 15s
 * control: cpu
 */
#include "attack.h"

int main(void)
{
    signal(SIGXCPU, SIG_IGN);
    for (int64_t end = now_ms() + 6000; now_ms() < end;)
        continue;
    pwned("spun for 6 s under a limit of 1 s");
    return 0;
}
