/* threat: 1.4-signal
 * attack: signal a process of the host by number, by pidfd and by process group
 * expect: status=ok
 * control: pidns
 * bare: victim
 */
#include "attack.h"

int main(void)
{
    pid_t victim = atoi(given("BAIT_PID"));
    if (!kill(victim, 0) || errno != ESRCH)
        pwned("process %d answers a signal: %s", victim, strerror(errno));
    int pidfd = (int)syscall(SYS_pidfd_open, victim, 0);
    if (pidfd >= 0) {
        pwned("process %d has a pidfd here", victim);
        syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
    }
    kill(victim, SIGKILL);
    kill(-victim, SIGKILL);
    syscall(SYS_tgkill, victim, victim, SIGKILL);
    siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE};
    syscall(SYS_rt_sigqueueinfo, victim, SIGKILL, &info);
    return held();
}
