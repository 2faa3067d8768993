/* threat: 1.4-kill-all
 * attack: signal every process that can be reached and pretend that the program ended well
 * expect: status=nonzero_exit; exit=9
 * bare: unsafe kills everything the user owns
 */
#include "attack.h"

int main(void)
{
    const int signals[] = {SIGSTOP, SIGTERM, SIGHUP, SIGABRT, SIGSEGV, SIGSYS, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        kill(-1, signals[i]);
    for (int i = 0; i < 2000; i++)
        kill(-1, SIGKILL);
    held();
    return 9;
}
