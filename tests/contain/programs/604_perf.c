/* threat: 1.6-perf
 * attack: open performance events on oneself and on the processor
 * expect: status=ok; denials~perf_event_open
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <linux/perf_event.h>

int main(void)
{
    struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE, .size = sizeof clock, .config = PERF_COUNT_SW_CPU_CLOCK, .exclude_kernel = 1};
    reached("perf_event_open", syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0));
    reached("perf_event_open", syscall(SYS_perf_event_open, &clock, -1, 0, -1, 0));
    return held();
}
