/* threat: 1.6-io-uring
 * attack: set up io_uring, whose file and socket work no filter sees
 * expect: status=ok; denials~io_uring_setup
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <linux/io_uring.h>

int main(void)
{
    struct io_uring_params parameters = {0};
    reached("io_uring_setup", syscall(SYS_io_uring_setup, 8, &parameters));
    reached("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
    reached("io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0));
    return held();
}
