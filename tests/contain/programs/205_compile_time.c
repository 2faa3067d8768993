/* threat: 1.2-compile
 * attack: make the compiler read the secret into the binary or the error messages
 * expect: status=ok|nonzero_exit|compile_error; silent
 * run: c
 * template: yes
 * control: mountns
 * bare: secret
 */
#if __has_include("@BAIT_DIR@/world.txt")
#include "@BAIT_DIR@/world.txt"
#endif
#if __has_include("/etc/shadow")
#error PWNED: the compiler sees /etc/shadow
#endif
__asm__(".section .rodata\nstolen: .incbin \"@BAIT_DIR@/world.txt\"\n.byte 0\n.text\n");
extern const char stolen[];
int puts(const char *);
int main(void)
{
    puts(stolen);
    puts("held");
    return 0;
}
