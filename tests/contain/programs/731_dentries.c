/* threat: 1.7-dentries
 * attack: fill the kernel's caches with names that do not exist
 * expect: status=ok|memory_limit|signaled; silent; mem<500m; ends<10s
 * limits: --memory 64m --wall 8s
 * needs: cgroup
 */
#include "attack.h"

int main(void)
{
    char path[128];
    struct stat st;
    int64_t end = now_ms() + 2500;
    for (long i = 0; now_ms() < end; i++) {
        snprintf(path, sizeof path, "/usr/no-such-name-%060ld", i);
        stat(path, &st);
        snprintf(path, sizeof path, "/work/no-such-name-%060ld", i);
        stat(path, &st);
    }
    return held();
}
