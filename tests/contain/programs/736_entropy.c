/* threat: 1.7-entropy
 * attack: drain the random pool without end
 * expect: status=ok; ends<8s
 * limits: --wall 6s
 */
#include "attack.h"

#include <sys/random.h>

int main(void)
{
    static char block[1 << 20];
    int blocking = open("/dev/random", O_RDONLY);
    int64_t end = now_ms() + 300;
    while (now_ms() < end)
        if (getrandom(block, 4096, 0) < 0 || read(blocking, block, 4096) < 0)
            break;
    return held();
}
