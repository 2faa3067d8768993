/* threat: 1.8-keyrings
 * attack: leave a key in the user's and the session's keyring for the next run with the same host uid
 * expect: status=ok
 * stages: plant find
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <linux/keyctl.h>

int main(int argc, char **argv)
{
    const int rings[] = {KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_SESSION_KEYRING};
    for (size_t i = 0; i < 3; i++) {
        if (argc > 1 && !strcmp(argv[argc - 1], "plant")) {
            if (syscall(SYS_add_key, "user", given("MARK"), "left", 4, rings[i]) > 0)
                pwned("left a key in keyring %d", rings[i]);
            continue;
        }
        long key = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", given("MARK"), 0);
        if (key > 0) {
            pwned("the earlier run's key is here");
            syscall(SYS_keyctl, KEYCTL_UNLINK, key, rings[i]);
        }
    }
    return held();
}
