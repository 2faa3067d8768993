/* threat: 1.6-keyrings
 * attack: read keys that the caller holds in its session keyring, add keys, ask for keys
 * expect: status=ok; denials~keyctl
 * control: seccomp
 * bare: secret
 */
#include "attack.h"

#include <linux/keyctl.h>

int main(void)
{
    const int rings[] = {KEY_SPEC_THREAD_KEYRING, KEY_SPEC_PROCESS_KEYRING, KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING, KEY_SPEC_USER_SESSION_KEYRING};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        long key = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", given("BAIT_KEY"), 0);
        char value[256] = "";
        if (key > 0 && syscall(SYS_keyctl, KEYCTL_READ, key, value, sizeof value - 1) > 0)
            say("%s\n", value);
    }
    errno = 0;
    if (syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) > 0)
        pwned("keyctl reached");
    if (syscall(SYS_add_key, "user", "contain-attack", "x", 1, KEY_SPEC_PROCESS_KEYRING) > 0)
        pwned("added a key");
    if (syscall(SYS_request_key, "user", given("BAIT_KEY"), NULL, 0) > 0)
        pwned("request_key found a key");
    return held();
}
