/* threat: 1.6-int80
 * attack: call through the 32-bit gate, whose numbers a careless filter reads as 64-bit ones
 * expect: status=denied; silent
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    long answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    if (answer == getpid())
        pwned("int 0x80 works");
    return 0;
}
