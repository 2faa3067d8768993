/* Handing over: the plan to a program that waits before exec, or the code to an interpreter that waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "warden/warden.h"

/* One message, which must fit into a socket's buffer of ordinary size. */
#define CODE_BYTES_MAX (96 << 10)
#define ITEMS_MAX      512
#define STORE_PAGE     4096

int handover_plan(struct cell *cell, int plan_fd, const struct plan *plan, bool waits)
{
    int fds[1 + STREAM_COUNT + PLAN_MOUNT_MAX] = {plan_fd};
    size_t count = 1, streams = plan->value_pipe ? STREAM_COUNT : STREAM_VALUE;
    struct handover_message message = {.waits = waits};
    for (size_t i = 0; i < streams; i++)
        fds[count++] = cell->streams[i];
    /* An ordinary user's mounts are opened by the program itself. */
    for (size_t i = 0; i < plan->mount_count && !cell->mounts[i].source; i++) {
        fds[count++] = cell->mount_fds[i];
        message.mount_count++;
    }
    return fd_send(cell->talk.fd, &message, sizeof message, fds, count);
}

/* Whoever writes the files into a slot tells of those that do not fit; a bootstrap would have to be believed. */
static bool files_fit_limits(const struct plan *plan)
{
    const int64_t *limit = plan->limit;
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->file_count; i++) {
        int64_t length = (int64_t)plan->files[i].length;
        bytes += length + STORE_PAGE;
        if (limit[LIMIT_FILE_BYTES] != LIMIT_UNLIMITED && length > limit[LIMIT_FILE_BYTES])
            return false;
    }
    return 2 * bytes <= limit[LIMIT_DISK_BYTES] && (int64_t)plan->file_count * 32 <= limit[LIMIT_INODES];
}

bool handover_fits(const struct plan *plan)
{
    if (!files_fit_limits(plan))
        return false;
    size_t items = plan->handover_count + 1 + 3 * plan->file_count, bytes = 8 * items;
    for (size_t i = 0; i < plan->handover_count; i++)
        bytes += strlen(plan->handover[i]);
    for (size_t i = 0; i < plan->file_count && bytes < CODE_BYTES_MAX; i++)
        bytes += strlen(plan->files[i].path) + plan->files[i].length;
    return items <= ITEMS_MAX && bytes <= CODE_BYTES_MAX;
}

struct code {
    struct iovec parts[1 + ITEMS_MAX];
    size_t count;
    char header[ITEMS_MAX * 8 + 16];
    size_t header_length;
    char modes[ITEMS_MAX / 3][8];
    char file_count[8];
};

static void add(struct code *code, const void *bytes, size_t length)
{
    code->parts[code->count++] = (struct iovec){(void *)bytes, length};
    code->header_length +=
        (size_t)snprintf(code->header + code->header_length, sizeof code->header - code->header_length, "%zu ", length);
}

/* A line of lengths, then everything those are the lengths of. */
static int send_code(int socket, const struct plan *plan)
{
    static struct code code; /* large, and used by one thread */
    code.count = 1;
    code.header_length = 0;
    for (size_t i = 0; i < plan->handover_count; i++)
        add(&code, plan->handover[i], strlen(plan->handover[i]));
    add(&code, code.file_count, (size_t)snprintf(code.file_count, sizeof code.file_count, "%zu", plan->file_count));
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct plan_file *file = &plan->files[i];
        add(&code, file->path, strlen(file->path));
        add(&code, code.modes[i],
            (size_t)snprintf(code.modes[i], sizeof code.modes[i], "%o", (unsigned)file->mode & 0777));
        add(&code, file->content, file->length);
    }
    code.header[code.header_length - 1] = '\n';
    code.parts[0] = (struct iovec){code.header, code.header_length};
    struct msghdr message = {.msg_iov = code.parts, .msg_iovlen = code.count};
    ssize_t n;
    do
        n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

static int reconfigure_store(const struct cell *cell, const int64_t *limit)
{
    char text[24];
    auto_close int store = fspick(cell->work_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
    if (store < 0)
        return -1;
    snprintf(text, sizeof text, "%lld", (long long)limit[LIMIT_DISK_BYTES]);
    if (fsconfig(store, FSCONFIG_SET_STRING, "size", text, 0) < 0)
        return -1;
    snprintf(text, sizeof text, "%lld", (long long)limit[LIMIT_INODES] + 4);
    if (fsconfig(store, FSCONFIG_SET_STRING, "nr_inodes", text, 0) < 0)
        return -1;
    return fsconfig(store, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
}

struct from_inside {
    const struct cell *cell;
    const int64_t *limit;
    int error;
};

static int resize_from_inside(void *context)
{
    struct from_inside *at = context;
    bool done =
        setns(at->cell->init.fd, CLONE_NEWUSER | CLONE_NEWNS) == 0 && reconfigure_store(at->cell, at->limit) == 0;
    at->error = done ? 0 : errno;
    return 0;
}

/* The store's quota, changed from outside: nobody in the cell has the right to. An ordinary user's warden has it only
 * within the cell's own namespaces, where a helper goes. */
static int resize_store(const struct warden *warden, const struct cell *cell, const int64_t *limit)
{
    struct from_inside context = {cell, limit, EAGAIN};
    if (!warden->rootless)
        return reconfigure_store(cell, limit);
    if (spawn_helper(resize_from_inside, &context) < 0)
        return -1;
    errno = context.error;
    return context.error ? -1 : 0;
}

static bool differs(const int64_t *a, const int64_t *b, enum limit first, enum limit second)
{
    return a[first] != b[first] || a[second] != b[second];
}

static bool process_limits_differ(const int64_t *a, const int64_t *b)
{
    return differs(a, b, LIMIT_OPEN_FILES, LIMIT_FILE_BYTES) || differs(a, b, LIMIT_PROCESSES, LIMIT_CPU_MS) ||
           a[LIMIT_MEMORY_BYTES] != b[LIMIT_MEMORY_BYTES];
}

static int limit_from_inside(void *context)
{
    struct from_inside *at = context;
    bool done = setns(at->cell->program.fd, CLONE_NEWUSER) == 0 &&
                rlimits_apply(at->cell->program_pid, at->limit, at->cell->cgroup.kind != CGROUP_NONE) == 0;
    at->error = done ? 0 : errno;
    return 0;
}

/* Of a process with other ids, which takes a right over its user namespace: a helper gets that by entering it. */
static int limit_process(const struct cell *cell, const int64_t *limit)
{
    struct from_inside context = {cell, limit, EAGAIN};
    if (rlimits_apply(cell->program_pid, limit, cell->cgroup.kind != CGROUP_NONE) == 0)
        return 0;
    if (errno != EPERM || spawn_helper(limit_from_inside, &context) < 0)
        return -1;
    errno = context.error;
    return context.error ? -1 : 0;
}

/* From what the cell was made with to what its order wants. */
static int apply_limits(const struct warden *warden, struct cell *cell, bool running, enum cell_step *step)
{
    const int64_t *want = cell->plan.limit;
    if (!memcmp(want, cell->limit, sizeof cell->limit))
        return 0;
    *step = STEP_CGROUP_JOIN;
    if (cell->cgroup.kind != CGROUP_NONE && (differs(want, cell->limit, LIMIT_MEMORY_BYTES, LIMIT_PROCESSES) ||
                                             want[LIMIT_CPUS] != cell->limit[LIMIT_CPUS])) {
        if (cgroup_limit(&cell->cgroup, want) < 0)
            return -1;
    }
    *step = STEP_STORE;
    if (differs(want, cell->limit, LIMIT_DISK_BYTES, LIMIT_INODES) && resize_store(warden, cell, want) < 0)
        return -1;
    *step = STEP_RLIMITS;
    if (running && process_limits_differ(want, cell->limit) && limit_process(cell, want) < 0)
        return -1;
    memcpy(cell->limit, want, sizeof cell->limit);
    return 0;
}

void handover_slot(struct warden *warden, struct cell *cell)
{
    enum cell_step step = STEP_STDIO;
    uint32_t detail = 0;
    cell->warmth = WARMTH_SLOT;
    if (cell->plan.value_pipe && streams_open_value(cell) < 0)
        goto failed;
    if (apply_limits(warden, cell, false, &step) < 0)
        goto failed;
    step = STEP_REQUEST_MOUNT;
    if (mount_sources_idmap(warden, cell, &detail) < 0)
        goto failed;
    step = STEP_HANDOVER;
    if (handover_plan(cell, cell->plan_fd, &cell->plan, false) == 0) {
        cell->phase = PHASE_STARTING; /* from here on a failure is the request's own */
        return;
    }
failed:
    cell_fail(warden, cell, step, detail, errno, NULL);
}

void handover_code(struct warden *warden, struct cell *cell)
{
    enum cell_step step;
    if (apply_limits(warden, cell, true, &step) < 0) {
        cell_fail(warden, cell, step, 0, errno, NULL);
        return;
    }
    uint64_t now = clock_us();
    if (send_code(cell->talk.fd, &cell->plan) < 0) {
        cell_fail(warden, cell, STEP_HANDOVER, 0, errno, NULL);
        return;
    }
    cell_running(warden, cell, now);
}
