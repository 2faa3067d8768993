/* threat: 1.6-modify-ldt
 * attack: write segment descriptors
 * expect: status=ok; denials~modify_ldt
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    unsigned entry[4] = {0, 0, 0xfffff, 0x51};
    reached("modify_ldt", syscall(SYS_modify_ldt, 1, entry, sizeof entry));
    reached("modify_ldt", syscall(SYS_modify_ldt, 0, entry, sizeof entry));
    return held();
}
