/* threat: 1.5-userns
 * attack: make a user namespace, the door to most kernel bugs, by unshare and by clone; then every other kind
 * expect: status=ok; denials~unshare
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

static int nothing(void *unused)
{
    (void)unused;
    return 0;
}

int main(void)
{
    const int kinds[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80};
    static char stack[65536];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pid_t child = fork();
        if (!child) {
            if (!unshare(kinds[i]))
                pwned("unshare(%#x)", kinds[i]);
            if (!unshare(CLONE_NEWUSER | kinds[i]))
                pwned("unshare(CLONE_NEWUSER | %#x)", kinds[i]);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        if (kinds[i] == 0x80)
            continue;
        for (int with_user = 0; with_user < 2; with_user++) {
            child = clone(nothing, stack + sizeof stack, kinds[i] | (with_user ? CLONE_NEWUSER : 0) | SIGCHLD, NULL);
            if (child > 0) {
                pwned("clone(%#x)", kinds[i]);
                waitpid(child, NULL, 0);
            }
        }
    }
    return held();
}
