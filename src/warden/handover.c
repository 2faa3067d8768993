/* Handing over: the plan to a program that waits before exec, or the code to an interpreter that waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "plan/code.h"
#include "warden/warden.h"

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

static struct code_source code_of(const struct plan *plan)
{
    return (struct code_source){.limit = plan->limit,
                                .handover = plan->handover,
                                .handover_count = plan->handover_count,
                                .files = plan->files,
                                .file_count = plan->file_count};
}

bool handover_fits(const struct plan *plan)
{
    struct code_source code = code_of(plan);
    return code_fits(&code);
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
    struct code_source code = code_of(&cell->plan);
    if (code_send(cell->talk.fd, &code) < 0) {
        cell_fail(warden, cell, STEP_HANDOVER, 0, errno, NULL);
        return;
    }
    cell_running(warden, cell, now);
}
