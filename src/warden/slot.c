/* Slots: cells made ahead of any order. Everything that no request decides is done: groups, namespaces, mounts. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "warden/pool.h"
#include "warden/warden.h"

#define PATIENCE_US (30 * UINT64_C(1000000))
/* On a machine that is never idle nothing would come about. */
#define STAND_BACK_US 100000
#define DYING_US      5000

int slot_make(struct warden *warden, struct cell *cell)
{
    struct pool *pool = cell->pool;
    enum cell_step step = STEP_STDIO;
    cell->phase = PHASE_MAKING;
    cell->namespaces = order_namespaces();
    cell->patience_us = clock_us() + PATIENCE_US;
    memcpy(cell->limit, pool->plan.limit, sizeof cell->limit);
    if (streams_open(cell, pool->plan.value_pipe) < 0)
        goto failed;
    if (order_group(warden, cell, cell->limit) < 0)
        return -1;
    if (!cell->ordered && !pool_is_short(warden, pool))
        slot_stand_back(cell);
    step = STEP_CGROUP_JOIN;
    if (pool->kind == POOL_FORKED && cgroup_admit(&warden->cgroups, &cell->cgroup, identity_slot_owner(warden)) < 0)
        goto failed;
    if (maker_order(warden, cell, &step) == 0)
        return 0;
failed:
    cell_fail(warden, cell, step, 0, errno, NULL);
    return -1;
}

void slot_stand_back(struct cell *cell)
{
    if (!cell->stands_back)
        cgroup_set_idle(&cell->cgroup, true);
    cell->stands_back = true;
}

void slot_come_forward(struct cell *cell)
{
    if (cell->stands_back)
        cgroup_set_idle(&cell->cgroup, false);
    cell->stands_back = false;
}

uint64_t slot_patience_ends(const struct cell *cell)
{
    uint64_t since = cell->phase == PHASE_ENDED ? cell->ended_us + DYING_US : cell->made_us + STAND_BACK_US;
    return cell->stands_back ? since : UINT64_MAX;
}

static void close_slot(struct cell *cell)
{
    for (int i = 0; i < SLOT_NAMESPACES; i++) {
        cleanup_close(&cell->slot[i]);
        cell->slot[i] = -1;
    }
}

void slot_enter(struct warden *warden, struct cell *cell)
{
    enum cell_step step = STEP_ENTER;
    struct pool *pool = cell->pool;
    if (pool->kind == POOL_FORKED) {
        if (pool->zygote.state != ZYGOTE_SERVING && !(cell->probe && pool->zygote.state == ZYGOTE_PROVING))
            return; /* its time comes */
        if (zygote_fork(warden, pool, cell) < 0)
            cell_fail(warden, cell, STEP_ENTER, 0, errno, "fork a waiting interpreter");
        else
            cell->phase = PHASE_WARMING;
        close_slot(cell);
        return;
    }
    close_slot(cell);
    if (spawn_program(warden, cell, &step) < 0 || spawn_join(cell) < 0) {
        cell_fail(warden, cell, step, 0, errno, NULL);
        return;
    }
    if (pool->kind == POOL_SLOTS) {
        pool_cell_ready(warden, cell);
        return;
    }
    cell->warmth = WARMTH_STARTED;
    cell->phase = PHASE_WARMING;
    if (handover_plan(cell, pool->plan_fd, &pool->plan, true) < 0)
        cell_fail(warden, cell, STEP_HANDOVER, 0, errno, NULL);
}

/* The root stands. */
void slot_prepared(struct warden *warden, struct cell *cell, const int *fds, size_t fd_count)
{
    size_t next = 0;
    cell->work_fd = fds[next++];
    /* With or without those of a new identity, with or without those that a fork needs. */
    bool is_new = fd_count == 1 + SLOT_NAMESPACES || fd_count == 1 + SLOT_PID;
    for (int i = is_new ? SLOT_USER : SLOT_PID; i < SLOT_NAMESPACES && next < fd_count; i++)
        cell->slot[i] = fds[next++];
    if (is_new && cell->identity) {
        identity_made(warden, cell->identity, cell->slot);
    }
    cell->phase = PHASE_SLOT;
    slot_enter(warden, cell);
}
