/* threat: 1.7-pid-wrap
 * attack: run through process numbers as fast as possible, so that a number is soon used again
 * expect: status=ok; procs<400; ends<10s
 * limits: --wall 8s
 */
#include "attack.h"

int main(void)
{
    int64_t end = now_ms() + 1500;
    while (now_ms() < end) {
        pid_t child = vfork();
        if (!child)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    return held();
}
