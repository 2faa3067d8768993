/* threat: 1.5-realtime
 * attack: take the processor by real-time and deadline scheduling, negative nice and real-time input/output
 * expect: status=ok
 * control: capabilities own_uid
 * bare: pwned as root
 */
#include "attack.h"

#include <linux/ioprio.h>

struct deadline {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

int main(void)
{
    struct deadline wish = {.size = sizeof wish, .policy = 6, .runtime = 10000000, .deadline = 30000000, .period = 30000000};
    if (!syscall(SYS_sched_setattr, 0, &wish, 0))
        pwned("deadline scheduling");
    struct sched_param lowest = {1};
    if (!sched_setscheduler(0, SCHED_FIFO, &lowest) || !sched_setscheduler(0, SCHED_RR, &lowest))
        pwned("real-time scheduling");
    errno = 0;
    if (!setpriority(PRIO_PROCESS, 0, -5))
        pwned("priority raised");
    if (!syscall(SYS_ioprio_set, 1, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)))
        pwned("real-time input/output");
    return held();
}
