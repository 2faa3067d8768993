/* threat: 1.8-mqueue
 * attack: leave a message in a POSIX queue for the next run
 * expect: status=ok
 * stages: plant find
 * control: ipcns
 * bare: pwned
 */
#include "attack.h"

#include <mqueue.h>

int main(int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "/%s", given("MARK"));
    if (argc > 1 && !strcmp(argv[argc - 1], "plant")) {
        mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0666, NULL);
        mq_send(queue, "left", 4, 0);
    } else if (mq_open(name, O_RDWR) >= 0) {
        pwned("the earlier run's queue is here");
        mq_unlink(name);
    }
    return held();
}
