/* threat: 1.3-vsock
 * attack: make a socket to the hypervisor, which no network namespace fences
 * expect: status=ok; denials~AF_VSOCK
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (socket(AF_VSOCK, types[i], 0) >= 0)
            pwned("AF_VSOCK socket of type %d", types[i]);
    if (open("/dev/vsock", O_RDONLY) >= 0)
        pwned("/dev/vsock opened");
    return held();
}
