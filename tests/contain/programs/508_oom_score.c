/* threat: 1.5-oom-score
 * attack: hide from the OOM killer with a low oom_score_adj, or push others in front
 * expect: status=ok
 * control: capabilities own_uid
 * bare: no a superuser without CAP_SYS_RESOURCE may not either
 */
#include "attack.h"

static void set(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY);
    if (fd >= 0 && write(fd, value, strlen(value)) > 0)
        pwned("wrote %s to %s", value, path);
    close(fd);
}

int main(void)
{
    set("/proc/self/oom_score_adj", "-1000");
    set("/proc/self/oom_score_adj", "-1");
    set("/proc/self/oom_adj", "-17");
    return held();
}
