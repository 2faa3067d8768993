/* threat: 1.9-exit-early
 * attack: interrupt one's own exit with a storm of signals, to be recorded as ended and yet run on
 * expect: status=nonzero_exit; exit=42; silent; ends<6s
 * limits: --wall 5s
 */
#include "attack.h"

static void again(int number)
{
    (void)number;
    static int caught;
    if (++caught > 100000)
        say("PWNED: ran on after the exit\n");
}

int main(void)
{
    signal(SIGALRM, again);
    signal(SIGUSR1, again);
    pid_t self = getpid();
    if (!fork())
        for (int64_t end = now_ms() + 2000; now_ms() < end;)
            if (kill(self, SIGUSR1))
                _exit(0);
    nap_ms(50);
    syscall(SYS_exit_group, 42);
    return 0;
}
