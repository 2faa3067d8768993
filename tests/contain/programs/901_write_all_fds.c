/* threat: 1.9-control-fd
 * attack: write a forged result to every descriptor, also through /proc, and end badly
 * expect: status=nonzero_exit; exit=7
 * control: close_fds
 * bare: scribbled
 */
#include "attack.h"

int main(void)
{
    const char *forged = "{\"status\":\"ok\",\"success\":true,\"exit_code\":0}\n";
    for (int fd = 3; fd < 4096; fd++) {
        if (write(fd, forged, strlen(forged)) > 0)
            pwned("wrote to descriptor %d", fd);
        char path[64];
        snprintf(path, sizeof path, "/proc/1/fd/%d", fd);
        int copy = open(path, O_WRONLY | O_NONBLOCK);
        if (copy >= 0) {
            pwned("wrote to descriptor %d of init", fd);
            if (write(copy, forged, strlen(forged)) < 0)
                close(copy);
        }
    }
    held();
    return 7;
}
