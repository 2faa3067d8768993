/* From an order to a cell that prepares for it: made ahead or made now, then limited, told, and given its program. */
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

/* The cell without its request: control group and init. */
static int prepare(struct warden *warden, struct cell *cell, enum cell_step *step)
{
    *step = STEP_CGROUP_JOIN;
    cell->cgroup_error = warden->cgroups.error;
    if (warden->cgroups.kind != CGROUP_NONE) {
        if (cgroup_create(&warden->cgroups, warden->next_number++, &cell->cgroup) < 0) {
            cell->cgroup_error = errno;
            cell->cgroup.kind = CGROUP_NONE;
        } else if (loop_watch(warden, &cell->oom, cell->cgroup.oom_fd, cell, cell->oom.ready) < 0)
            return -1;
    }
    if (cell->cgroup.kind == CGROUP_V2)
        loop_watch_priority(warden, &cell->oom);
    cell->namespaces = wanted_namespaces();
    return spawn_init(warden, cell, step);
}

void cell_prepare_spare(struct warden *warden)
{
    if (warden->spare || warden->no_spares || warden->broken.type || warden->leaving)
        return;
    enum cell_step step;
    struct cell *cell = cell_new(warden);
    warden->spare = cell;
    if (cell && prepare(warden, cell, &step) < 0)
        cell_fail(warden, cell, STEP_NONE, 0, errno, NULL);
}

static struct cell *take_spare(struct warden *warden)
{
    struct cell *cell = warden->spare;
    warden->spare = NULL;
    return cell;
}

static bool limit_group(struct warden *warden, struct cell *cell)
{
    bool tolerated = cell->plan.optional & CONTROL_BIT(CONTROL_CGROUP);
    if (cell->cgroup.kind == CGROUP_NONE) {
        if (!tolerated)
            cell_fail(warden, cell, STEP_CGROUP_JOIN, 0, cell->cgroup_error,
                      warden->cgroups.cause ? warden->cgroups.cause : "create the cgroup");
        return tolerated;
    }
    if (cgroup_limit(&cell->cgroup, cell->plan.limit) < 0) {
        cell_fail(warden, cell, STEP_CGROUP_JOIN, 1, errno, "set the limits of the cgroup");
        return false;
    }
    cell->controls |= CONTROL_BIT(CONTROL_CGROUP);
    return true;
}

/* Everything the request needs of a prepared or new cell. */
static void hand_over(struct warden *warden, struct cell *cell)
{
    enum cell_step step;
    uint32_t detail = 0;
    if ((!cell->init_pid && prepare(warden, cell, &step) < 0) || !limit_group(warden, cell)) {
        if (cell->phase != PHASE_ENDED)
            cell_fail(warden, cell, step, 0, errno, NULL);
        return;
    }
    /* The program is cloned while init still prepares: what it can do before it enters runs beside that. */
    if (spawn_order(warden, cell, &step, &detail) < 0 || spawn_program(warden, cell, &step) < 0)
        cell_fail(warden, cell, step, detail, errno, NULL);
}

void cell_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count)
{
    size_t first_mount = order->has_value ? ORDER_MOUNTS : ORDER_VALUE;
    size_t mount_count = fd_count > first_mount ? fd_count - first_mount : 0;
    struct cell *cell = NULL;
    /* Init learns of mounts when it is cloned, so a request that has some cannot take one made ahead. */
    if (fd_count >= first_mount && !(cell = mount_count ? NULL : take_spare(warden)))
        cell = cell_new(warden);
    if (!cell) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        return;
    }
    warden->orders++;
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
    hand_over(warden, cell);
}
