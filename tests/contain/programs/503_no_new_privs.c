/* threat: 1.5-no-new-privs
 * attack: find that an exec could still raise privilege
 * expect: status=ok
 * control: no_new_privs
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        pwned("no_new_privs is not set");
    return held();
}
