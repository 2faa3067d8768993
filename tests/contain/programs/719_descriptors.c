/* threat: 1.7-descriptors
 * attack: hold more descriptors than allowed
 * expect: status=ok
 * limits: --open-files 64
 * control: open_files
 */
#include "attack.h"

int main(void)
{
    int held_open = 0;
    while (held_open < 5000 && open("/dev/null", O_RDONLY) >= 0)
        held_open++;
    for (int fd = 64; fd < 4096; fd += 64)
        if (dup2(0, fd) >= 0)
            held_open++;
    if (held_open > 64)
        pwned("%d descriptors under a limit of 64", held_open);
    return held();
}
