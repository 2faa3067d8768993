/* threat: 1.5-oom-score
 * attack: take back the score by which the host's OOM killer takes a cell first
 * expect: status=ok
 * control: oom_floor
 * needs: root resource
 * bare: no a program that nothing has volunteered has no score to take back
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
    set("/proc/self/oom_score_adj", "0");
    set("/proc/self/oom_score_adj", "499");
    set("/proc/self/oom_adj", "0");
    if (fork() == 0) {
        set("/proc/self/oom_score_adj", "0");
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    return held();
}
