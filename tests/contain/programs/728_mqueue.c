/* threat: 1.7-mqueue
 * attack: use up POSIX message queues and their memory
 * expect: status=ok; ends<8s
 * control: ipcns
 * bare: mqueue
 */
#include "attack.h"

#include <mqueue.h>

int main(void)
{
    char name[64];
    int made = 0;
    for (int i = 0; i < (getpid() < 1000 ? 300 : 1); i++) {
        if (i)
            snprintf(name, sizeof name, "/%s-%d", given("MARK"), i);
        else
            snprintf(name, sizeof name, "/%s", given("MARK"));
        if (mq_open(name, O_CREAT | O_RDWR, 0600, NULL) >= 0)
            made++;
    }
    say("%d queues\n", made);
    return held();
}
