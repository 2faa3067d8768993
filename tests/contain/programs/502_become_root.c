/* threat: 1.5-root
 * attack: become root or another user by the plain calls, and find a real uid of 0 or foreign groups
 * expect: status=ok
 * control: own_uid capabilities
 * bare: pwned as root
 */
#include "attack.h"

#include <grp.h>
#include <sys/fsuid.h>

int main(void)
{
    if (!getuid() || !geteuid() || !getgid() || !getegid())
        pwned("running as uid %d gid %d", geteuid(), getegid());
    gid_t none = 0;
    if (!setgroups(1, &none))
        pwned("joined group 0");
    if (!setresgid(0, 0, 0) || !setgid(0) || !setregid(0, 0))
        pwned("became group 0");
    if (!setresuid(0, 0, 0) || !setuid(0) || !setreuid(0, 0))
        pwned("became uid 0");
    setfsuid(0);
    if (setfsuid((uid_t)-1) == 0)
        pwned("file system uid is 0");
    if (!sethostname("pwned", 5))
        pwned("named the host");
    return held();
}
