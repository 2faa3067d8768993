/* threat: 1.7-inotify
 * attack: hold kernel memory as inotify watches and instances
 * expect: status=ok|nonzero_exit|memory_limit|signaled; silent; mem<400m; ends<12s
 * limits: --memory 64m --inodes 20000 --wall 8s
 * needs: cgroup
 */
#include "attack.h"

#include <sys/inotify.h>

int main(void)
{
    int instances = 0, watches = 0, last = -1, fd;
    while (instances < 2000 && (fd = inotify_init1(IN_CLOEXEC)) >= 0) {
        last = fd;
        instances++;
    }
    for (int i = 0; i < 15000 && last >= 0; i++) {
        char path[32];
        snprintf(path, sizeof path, "w%d", i);
        close(open(path, O_CREAT | O_WRONLY, 0600));
        if (inotify_add_watch(last, path, IN_MODIFY | IN_ATTRIB | IN_MOVE | IN_DELETE_SELF) >= 0)
            watches++;
    }
    say("%d instances, %d watches\n", instances, watches);
    return 0;
}
