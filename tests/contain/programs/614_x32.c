/* threat: 1.6-x32
 * attack: call with the x32 bit set, which dodges a filter that compares plain numbers
 * expect: status=denied; silent
 * control: seccomp
 * bare: no the kernel may be built without x32
 */
#include "attack.h"

int main(void)
{
    const long calls[] = {SYS_getpid, SYS_ptrace, SYS_mount};
    for (size_t i = 0; i < 3; i++)
        syscall(0x40000000 | calls[i], 0, 0, 0, 0, 0);
    pwned("x32 calls came back");
    return 0;
}
