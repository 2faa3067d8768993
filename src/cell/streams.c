/* The program's own descriptors: standard streams, value pipe, and in a waiting cell the socket its code comes by. */
#include <fcntl.h>
#include <unistd.h>

#include "cell/mutant.h"
#include "cell/steps.h"

#define HIGH (CELL_HANDOVER_FD + 1)

static int close_on_exec_from(unsigned first)
{
    return MUTANT(CLOSE_FDS) ? 0 : close_range(first, ~0U, CLOSE_RANGE_CLOEXEC);
}

int streams_connect(const int streams[STREAM_COUNT], int handover, int *kept[], unsigned kept_count)
{
    /* Out of the way first, so that no dup2 lands on a descriptor still needed. */
    int high[STREAM_COUNT + 1];
    for (int i = 0; i <= STREAM_COUNT; i++) {
        int fd = i < STREAM_COUNT ? streams[i] : handover;
        high[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
        if (fd >= 0 && high[i] < 0)
            return -1;
    }
    for (unsigned i = 0; i < kept_count; i++) {
        if (*kept[i] < 0)
            continue;
        *kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, HIGH);
        if (*kept[i] < 0)
            return -1;
    }
    for (int i = 0; i <= STREAM_COUNT; i++) {
        if (high[i] >= 0 && dup2(high[i], i) < 0)
            return -1;
        if (high[i] < 0 && i > STREAM_ERR)
            close(i);
    }
    return close_on_exec_from(HIGH);
}
