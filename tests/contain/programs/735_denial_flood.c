/* threat: 1.7-denial-flood
 * attack: drown the supervisor in refused calls from many processes
 * expect: status=wall_limit; silent; ends<7s; host-rss<64m
 * limits: --wall 2s --processes 100
 * control: wall
 */
#include "attack.h"

#include <sys/ptrace.h>

int main(void)
{
    for (int i = 0; i < 80; i++)
        if (!fork())
            break;
    for (int64_t end = now_ms() + 7000; now_ms() < end;) {
        ptrace(PTRACE_ATTACH, 1, NULL, NULL);
        unshare(CLONE_NEWUSER);
        socket(AF_VSOCK, SOCK_STREAM, 0);
    }
    return 0;
}
