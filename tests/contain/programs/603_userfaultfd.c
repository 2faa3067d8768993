/* threat: 1.6-userfaultfd
 * attack: get a userfaultfd, which stretches kernel races at will
 * expect: status=ok; denials~userfaultfd
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    reached("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
    reached("userfaultfd", syscall(SYS_userfaultfd, 0xffff));
    if (open("/dev/userfaultfd", O_RDWR) >= 0)
        pwned("/dev/userfaultfd opened");
    return held();
}
