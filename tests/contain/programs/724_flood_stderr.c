/* threat: 1.7-output
 * attack: write 64 MiB to stderr and as much to stdout at the same time
 * expect: status=ok; silent; truncated=stderr; truncated=stdout; host-rss<64m; raw<1m
 * limits: --output 64k --wall 20s
 */
#include "attack.h"

int main(void)
{
    static char block[65536];
    memset(block, 'e', sizeof block);
    bool parent = fork() > 0;
    for (int i = 0; i < 1024; i++)
        if (write(parent ? 2 : 1, block, sizeof block) <= 0)
            return 1;
    if (parent)
        wait(NULL);
    return 0;
}
