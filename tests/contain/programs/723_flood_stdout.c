/* threat: 1.7-output
 * attack: write 256 MiB of lines to stdout
 * expect: status=ok; silent; truncated=stdout; host-rss<64m; raw<1m; stdout-bytes=268435456
 * limits: --output 64k --wall 20s
 */
#include "attack.h"

int main(void)
{
    static char block[65536];
    memset(block, 'x', sizeof block);
    for (size_t i = 63; i < sizeof block; i += 64)
        block[i] = '\n';
    for (int i = 0; i < 4096; i++)
        for (size_t done = 0; done < sizeof block;) {
            ssize_t wrote = write(1, block + done, sizeof block - done);
            if (wrote <= 0)
                return 1;
            done += (size_t)wrote;
        }
    return 0;
}
