/* From an order to a cell that serves it: one that waits, or one made for it. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "warden/pool.h"

/* Descriptors of an order for a run. */
enum { RUN_PLAN, RUN_SOCKET, RUN_MOUNTS };

uint32_t order_namespaces(void)
{
    uint32_t all = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    if (MUTANT(PIDNS))
        all &= ~(uint32_t)CLONE_NEWPID;
    if (MUTANT(NETNS))
        all &= ~(uint32_t)CLONE_NEWNET;
    if (MUTANT(IPCNS))
        all &= ~(uint32_t)CLONE_NEWIPC;
    if (MUTANT(UTSNS))
        all &= ~(uint32_t)CLONE_NEWUTS;
    return all;
}

int order_watch_memory(struct warden *warden, struct cell *cell)
{
    if (loop_watch(warden, &cell->oom, cgroup_watch_memory(&cell->cgroup), cell, cell->oom.ready) < 0)
        return -1;
    if (cell->cgroup.kind == CGROUP_V2)
        loop_watch_priority(warden, &cell->oom);
    return 0;
}

int order_group(struct warden *warden, struct cell *cell, const int64_t *limit)
{
    uint32_t optional = cell->pool ? cell->pool->plan.optional : cell->plan.optional;
    if (warden->cgroups.kind == CGROUP_NONE) {
        bool tolerated = optional & CONTROL_BIT(CONTROL_CGROUP);
        if (!tolerated)
            cell_fail(warden, cell, STEP_CGROUP_JOIN, 0, warden->cgroups.error, warden->cgroups.cause);
        return tolerated ? 0 : -1;
    }
    bool later = cell->pool && cell->pool->kind == POOL_FORKED; /* most of their programs end before it matters */
    if (cgroup_create(&warden->cgroups, warden->next_number++, &cell->cgroup) < 0 ||
        cgroup_limit(&cell->cgroup, limit) < 0 || (!later && order_watch_memory(warden, cell) < 0)) {
        cell_fail(warden, cell, STEP_CGROUP_JOIN, 1, errno, "make the cgroup");
        return -1;
    }
    cell->controls |= CONTROL_BIT(CONTROL_CGROUP) | (cell->cgroup.io_bounded ? CONTROL_BIT(CONTROL_IO) : 0);
    return 0;
}

/* Both processes are there, the group too: init learns whom it waits for, the program what it is to be. */
static int hand_over(struct warden *warden, struct cell *cell, enum cell_step *step, uint32_t *detail)
{
    *step = STEP_CGROUP_JOIN;
    if (fd_send(cell->init_talk.fd, "p", 1, &cell->program.fd, 1) < 0 || spawn_join(cell) < 0)
        return -1;
    *step = STEP_REQUEST_MOUNT;
    if (mount_sources_idmap(warden, cell, detail) < 0)
        return -1;
    *step = STEP_HANDOVER;
    return handover_plan(cell, cell->plan_fd, &cell->plan, false);
}

/* On v2 a process is born into its group, so that comes first; on v1 it joins by itself, so both processes are started
 * first and work while the group is made. */
void order_cold(struct warden *warden, struct cell *cell)
{
    enum cell_step step = STEP_STDIO;
    uint32_t detail = 0;
    bool born_into_group = warden->cgroups.kind != CGROUP_V1;
    cell->phase = PHASE_STARTING;
    cell->namespaces = order_namespaces();
    memcpy(cell->limit, cell->plan.limit, sizeof cell->limit);
    if (born_into_group && order_group(warden, cell, cell->limit) < 0)
        return;
    if (spawn_init(warden, cell, &step) < 0 || spawn_program(warden, cell, &step) < 0) {
        cell_fail(warden, cell, step, 0, errno, NULL);
        return;
    }
    if (!born_into_group && order_group(warden, cell, cell->limit) < 0)
        return;
    step = STEP_STDIO;
    if (streams_open(cell, cell->plan.value_pipe) < 0 || hand_over(warden, cell, &step, &detail) < 0)
        cell_fail(warden, cell, step, detail, errno, NULL);
}

void order_move(struct warden *warden, struct cell *from, struct cell *to)
{
    loop_move(warden, &from->run, &to->run, to);
    to->accepted_us = from->accepted_us;
    to->files_read = from->files_read;
    to->quiet = from->quiet;
    to->plan = from->plan;
    to->plan_fd = from->plan_fd;
    from->plan = (struct plan){0};
    from->plan_fd = -1;
    for (unsigned i = 0; i < PLAN_MOUNT_MAX; i++) {
        to->mount_fds[i] = from->mount_fds[i];
        to->mounts[i] = from->mounts[i];
        from->mount_fds[i] = -1;
        from->mounts[i] = (struct cell_mount){0};
    }
    from->ordered = false;
    to->ordered = true;
}

void cell_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count)
{
    size_t mount_count = fd_count > RUN_MOUNTS ? fd_count - RUN_MOUNTS : 0;
    struct cell *cell = fd_count >= RUN_MOUNTS ? cell_new(warden) : NULL;
    if (!cell) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        return;
    }
    cell->phase = PHASE_STARTING;
    cell->ordered = true;
    cell->plan_fd = fds[RUN_PLAN];
    cell->accepted_us = order->accepted_us;
    cell->files_read = order->files_read;
    cell->quiet = order->quiet;
    for (size_t i = 0; i < mount_count && i < PLAN_MOUNT_MAX; i++)
        cell->mount_fds[i] = fds[RUN_MOUNTS + i];
    if (loop_watch(warden, &cell->run, fds[RUN_SOCKET], cell, cell->run.ready) < 0) {
        cell_fail(warden, cell, STEP_NONE, 0, errno, "take the order");
        return;
    }
    if (warden->broken.type) {
        fd_send(cell->run.fd, &warden->broken, sizeof warden->broken, NULL, 0);
        cell->phase = PHASE_ENDED;
        cell->retry_us = 0;
        return;
    }
    if (plan_map(cell->plan_fd, &cell->plan) < 0) {
        cell_fail(warden, cell, STEP_NONE, 0, errno, "read the plan");
        return;
    }
    /* No child of the warden gets a copy of what the request carries. */
    madvise(cell->plan.mapping, cell->plan.mapping_size, MADV_DONTFORK);
    madvise(cell->plan.arrays, cell->plan.arrays_size, MADV_DONTFORK);
    if (mount_sources_resolve(warden, cell, cell->mount_fds, mount_count) < 0) {
        cell_fail(warden, cell, STEP_REQUEST_MOUNT, 0, errno, NULL);
        return;
    }
    if (!pool_serve(warden, cell))
        order_cold(warden, cell);
}
