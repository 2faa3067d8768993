/* threat: 1.9-exit-early
 * attack: be alone, leave, and let a timer's handler go on printing and writing files when the end has been told
 * expect: status=nonzero_exit; exit=42; silent; ends<6s
 * limits: --wall 5s
 */
#include "attack.h"

#include <sys/time.h>

static int64_t left_ms;

/* A few may come before the warden has seen the exit; none may afterwards, and it sees it long before this. */
static void again(int number)
{
    (void)number;
    if (left_ms && now_ms() - left_ms > 3000)
        say("PWNED: ran on after the exit\n");
    int file = open("/work/late", O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)!write(file, "late\n", 5);
    close(file);
}

int main(void)
{
    struct itimerval often = {{0, 50}, {0, 50}};
    signal(SIGALRM, again);
    setitimer(ITIMER_REAL, &often, NULL);
    left_ms = now_ms();
    syscall(SYS_exit_group, 42);
    return 0;
}
