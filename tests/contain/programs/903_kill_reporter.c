/* threat: 1.9-reporter
 * attack: kill and trace the parent and init, which report the end, then fail
 * expect: status=nonzero_exit; exit=5
 * control: pidns
 * bare: no it attacks its own parent
 */
#include "attack.h"

#include <sys/ptrace.h>

int main(void)
{
    if (getppid() > 1)
        pwned("the parent %d is visible", getppid());
    const int signals[] = {SIGSTOP, SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGKILL};
    for (pid_t pid = 1; pid < 10 && getpid() < 1000; pid++)
        for (size_t i = 0; pid != getpid() && i < sizeof signals / sizeof *signals; i++) {
            kill(pid, signals[i]);
            ptrace(PTRACE_ATTACH, pid, NULL, NULL);
        }
    nap_ms(30);
    held();
    return 5;
}
