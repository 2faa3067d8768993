/* threat: 1.7-timers
 * attack: hold kernel memory as timers and queued signals
 * expect: status=ok
 * control: -
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    int timers = 0, queued = 0;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    while (timers < 30000 && !timer_create(CLOCK_MONOTONIC, &event, &timer))
        timers++;
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &block, NULL);
    while (queued < 30000 && !sigqueue(getpid(), SIGRTMIN + 1, (union sigval){0}))
        queued++;
    say("%d timers, %d signals\n", timers, queued);
    if (timers > 10000 || queued > 10000)
        pwned("timers and signals have no bound");
    return held();
}
