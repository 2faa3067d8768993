/* The pipes between a program and the library. Made here, because a waiting cell has them before there is anybody to
 * read them; bytes never pass through the warden. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "warden/warden.h"

/* The program's end may be reopened through /dev/stdout by the cell's user, whoever that is on the host. */
static int open_pipe(int *near, int *far, bool far_reads)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *near = ends[far_reads ? 1 : 0];
    *far = ends[far_reads ? 0 : 1];
    return fcntl(*near, F_SETFL, O_NONBLOCK) < 0 ? -1 : fchmod(*far, 0666);
}

int streams_open_value(struct cell *cell)
{
    return open_pipe(&cell->near[STARTED_VALUE], &cell->streams[STREAM_VALUE], false);
}

int streams_open(struct cell *cell, bool value)
{
    if (open_pipe(&cell->near[STARTED_STDIN_WRITE], &cell->streams[STREAM_IN], true) < 0 ||
        open_pipe(&cell->near[STARTED_STDOUT], &cell->streams[STREAM_OUT], false) < 0 ||
        open_pipe(&cell->near[STARTED_STDERR], &cell->streams[STREAM_ERR], false) < 0 ||
        (value && streams_open_value(cell) < 0))
        return -1;
    cell->near[STARTED_STDIN_READ] = fcntl(cell->streams[STREAM_IN], F_DUPFD_CLOEXEC, 3);
    return cell->near[STARTED_STDIN_READ] < 0 ? -1 : 0;
}

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        cleanup_close(&fds[i]);
        fds[i] = -1;
    }
}

void streams_given(struct cell *cell)
{
    close_all(cell->streams, STREAM_COUNT);
}

void streams_close(struct cell *cell)
{
    close_all(cell->streams, STREAM_COUNT);
    close_all(cell->near, STARTED_MAX);
}

void streams_tell(struct cell *cell)
{
    struct event_started event = {.type = EVENT_STARTED};
    size_t first = cell->quiet ? STARTED_STDOUT : 0, end = cell->near[STARTED_VALUE] >= 0 ? STARTED_MAX : STARTED_VALUE;
    cell->streams_due_us = 0;
    if (cell->run.fd >= 0)
        fd_send(cell->run.fd, &event, sizeof event, cell->near + first, end - first);
    close_all(cell->near, STARTED_MAX);
}

void streams_started(struct cell *cell)
{
    if (cell->probe || cell->near[STARTED_STDOUT] < 0)
        return; /* nobody reads, but the pipes must not be broken; or the library has them already */
    if (!cell->quiet) {
        streams_tell(cell);
        return;
    }
    cell->streams_due_us = cell->started_us + QUIET_START_US;
    close_all(cell->near, STARTED_STDOUT);
}
