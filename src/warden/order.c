/* From an order to a cell that prepares for it: its two processes and its control group. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "warden/warden.h"

static uint32_t wanted_namespaces(void)
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

/* The cell's group, with its limits; false when the cell has failed for want of it. */
static bool make_group(struct warden *warden, struct cell *cell)
{
    bool tolerated = cell->plan.optional & CONTROL_BIT(CONTROL_CGROUP);
    if (warden->cgroups.kind == CGROUP_NONE) {
        if (!tolerated)
            cell_fail(warden, cell, STEP_CGROUP_JOIN, 0, warden->cgroups.error, warden->cgroups.cause);
        return tolerated;
    }
    if (cgroup_create(&warden->cgroups, warden->next_number++, &cell->cgroup) < 0 ||
        cgroup_limit(&cell->cgroup, cell->plan.limit) < 0 ||
        loop_watch(warden, &cell->oom, cell->cgroup.oom_fd, cell, cell->oom.ready) < 0) {
        cell_fail(warden, cell, STEP_CGROUP_JOIN, 1, errno, "make the cgroup");
        return false;
    }
    if (cell->cgroup.kind == CGROUP_V2)
        loop_watch_priority(warden, &cell->oom);
    cell->controls |= CONTROL_BIT(CONTROL_CGROUP);
    return true;
}

/* On v2 a process is born into its group, so that comes first; on v1 it joins by itself, so both processes are started
 * first and work while the group is made. */
static void make_cell(struct warden *warden, struct cell *cell)
{
    enum cell_step step;
    uint32_t detail = 0;
    bool born_into_group = warden->cgroups.kind != CGROUP_V1;
    cell->namespaces = wanted_namespaces();
    if (born_into_group && !make_group(warden, cell))
        return;
    if (spawn_init(warden, cell, &step) < 0 || spawn_program(warden, cell, &step) < 0) {
        cell_fail(warden, cell, step, 0, errno, NULL);
        return;
    }
    if (!born_into_group && !make_group(warden, cell))
        return;
    if (spawn_join(warden, cell, &step, &detail) < 0)
        cell_fail(warden, cell, step, detail, errno, NULL);
}

void cell_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count)
{
    size_t first_mount = order->has_value ? ORDER_MOUNTS : ORDER_VALUE;
    size_t mount_count = fd_count > first_mount ? fd_count - first_mount : 0;
    struct cell *cell = fd_count >= first_mount ? cell_new(warden) : NULL;
    if (!cell) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        return;
    }
    auto_close int plan_fd = fds[ORDER_PLAN];
    cell->accepted_us = order->accepted_us;
    for (size_t i = ORDER_STDIN; i < first_mount; i++)
        cell->stdio[i - ORDER_STDIN] = fds[i];
    for (size_t i = 0; i < mount_count && i < PLAN_MOUNT_MAX; i++)
        cell->mount_fds[i] = fds[first_mount + i];
    if (loop_watch(warden, &cell->run, fds[ORDER_RUN], cell, cell->run.ready) < 0) {
        cell_fail(warden, cell, STEP_NONE, 0, errno, "take the order");
        return;
    }
    if (warden->broken.type) {
        fd_send(cell->run.fd, &warden->broken, sizeof warden->broken, NULL, 0);
        cell->phase = PHASE_ENDED;
        cell->retry_us = 0;
        return;
    }
    if (plan_map(plan_fd, &cell->plan) < 0) {
        cell_fail(warden, cell, STEP_NONE, 0, errno, "read the plan");
        return;
    }
    /* No other child of the warden, this cell's init included, gets a copy of what the request carries. */
    madvise(cell->plan.mapping, cell->plan.mapping_size, MADV_DONTFORK);
    if (mount_sources_resolve(warden, cell, cell->mount_fds, mount_count) < 0) {
        cell_fail(warden, cell, STEP_REQUEST_MOUNT, 0, errno, NULL);
        return;
    }
    make_cell(warden, cell);
}
