/* The cell's own network: a loopback interface and nothing else, with small buffers. */
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cell/mutant.h"
#include "cell/steps.h"

int network_loopback_up(void)
{
    auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    return ioctl(fd, SIOCSIFFLAGS, &request);
}

/* Decimal without stdio. */
static unsigned put_number(char *text, int64_t number)
{
    char digits[20];
    unsigned count = 0, length = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count)
        text[length++] = digits[--count];
    return length;
}

/* v1 memory groups do not charge TCP buffers, and a socket may hold tens of megabytes by default. `bytes` becomes the
 * most one socket may buffer each way. */
int network_bound_buffers(int proc_fd, int64_t bytes)
{
    static const char *const files[] = {"sys/net/ipv4/tcp_rmem", "sys/net/ipv4/tcp_wmem"};
    if (MUTANT(TCP_BUFFERS))
        return 0;
    char text[64] = "4096 16384 ";
    unsigned length = (unsigned)strlen(text);
    length += put_number(text + length, bytes);
    for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
        auto_close int fd = openat(proc_fd, files[i], O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, text, length) != (ssize_t)length)
            return -1;
    }
    return 0;
}
