/* threat: 1.5-rlimits
 * attack: raise every resource limit, and find one that was left without a bound
 * expect: status=ok
 * limits: --open-files 128
 * control: capabilities own_uid
 * bare: pwned as root
 */
#include "attack.h"

int main(void)
{
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit now, more;
        if (getrlimit((__rlimit_resource_t)resource, &now))
            continue;
        more = (struct rlimit){now.rlim_max, now.rlim_max == RLIM_INFINITY ? RLIM_INFINITY : now.rlim_max + 1};
        if (more.rlim_max != now.rlim_max && !setrlimit((__rlimit_resource_t)resource, &more))
            pwned("raised limit %d above %llu", resource, (unsigned long long)now.rlim_max);
        more = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
        if (now.rlim_max != RLIM_INFINITY && !prlimit(0, (__rlimit_resource_t)resource, &more, NULL))
            pwned("limit %d is now endless", resource);
    }
    const __rlimit_resource_t bounded[] = {RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE, RLIMIT_RTPRIO, RLIMIT_NICE};
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        struct rlimit limit;
        if (!getrlimit(bounded[i], &limit) && limit.rlim_max == RLIM_INFINITY)
            pwned("limit %d has no bound", (int)bounded[i]);
    }
    return held();
}
