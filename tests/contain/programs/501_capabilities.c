/* threat: 1.5-capabilities
 * attack: look for any capability, in any set, and try to raise ambient ones or loosen the secure bits
 * expect: status=ok
 * control: capabilities
 * bare: pwned as root
 */
#include "attack.h"

#include <linux/capability.h>
#include <linux/securebits.h>

int main(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256], name[16];
    unsigned long long bits;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "%15[A-Za-z]: %llx", name, &bits) == 2 && !strncmp(name, "Cap", 3) && bits)
            pwned("%s is %llx", name, bits);
    for (int cap = 0; cap < 64; cap++) {
        if (!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0))
            pwned("raised ambient capability %d", cap);
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            pwned("capability %d is in the bounding set", cap);
    }
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct want[2] = {{~0U, ~0U, ~0U}, {~0U, ~0U, ~0U}};
    if (!syscall(SYS_capset, &head, want))
        pwned("capset gave everything");
    if (!prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) && prctl(PR_GET_SECUREBITS) == 0)
        pwned("secure bits cleared");
    return held();
}
