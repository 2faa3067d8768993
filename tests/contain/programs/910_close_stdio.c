/* threat: 1.9-closed
 * attack: close every stream, so that end of output is taken for the end, and fail later
 * expect: status=nonzero_exit; exit=6
 */
#include "attack.h"

int main(void)
{
    held();
    for (int fd = 0; fd < 64; fd++)
        close(fd);
    nap_ms(300);
    return 6;
}
