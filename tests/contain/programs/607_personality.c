/* threat: 1.6-personality
 * attack: switch off address randomisation and non-executable memory
 * expect: status=ok; denials~personality
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <sys/personality.h>

int main(void)
{
    const unsigned long wishes[] = {ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, PER_SVR4, UNAME26};
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        if (personality(wishes[i]) != -1)
            pwned("personality(%#lx)", wishes[i]);
    return held();
}
