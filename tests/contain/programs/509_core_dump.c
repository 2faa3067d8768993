/* threat: 1.5-core
 * attack: raise the core limit, make a child dump its memory, then crash
 * expect: status=signaled; signal=6; files=none
 * limits: --collect core*
 * bare: pwned as root
 */
#include "attack.h"

int main(void)
{
    struct rlimit endless = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &endless);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pid_t child = fork();
    if (!child)
        abort();
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WCOREDUMP(status))
        pwned("the kernel wrote a core dump");
    held();
    abort();
}
