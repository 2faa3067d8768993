/* What becomes of a cell after its end: killed, reaped, its groups removed, freed. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/pool.h"

#define RETRY_US 2000
/* After so many somebody may be in the cell whom nobody told of: init cannot leave before they are reaped. */
#define STUCK_RETRIES 100

static void signal_process(const struct watch *process, int number)
{
    if (process->fd >= 0)
        syscall(SYS_pidfd_send_signal, process->fd, number, NULL, 0);
}

/* Init's death ends every process of its pid namespace; the program is named too, for the moment before it entered. */
void cell_kill_processes(struct cell *cell)
{
    signal_process(&cell->init, SIGKILL);
    signal_process(&cell->program, SIGKILL);
    cgroup_kill(&cell->cgroup);
}

/* Where there are no pools, nobody is going to be served meanwhile but who waits for the end of this one. */
void cell_put_down(struct warden *warden, struct cell *cell)
{
    if (warden->pools && !warden->leaving && !pool_is_crowded(warden))
        slot_stand_back(cell);
    cell_kill_processes(cell);
    cell->put_down = true;
}

/* While the cell's mounts still hold the file system: its destruction must not be the warden's work. */
void cell_leave_caller(struct warden *warden, struct cell *cell)
{
    loop_forget(warden, &cell->run);
    cleanup_close(&cell->work_fd);
    cell->work_fd = -1;
}

/* What only a living cell needs; after the kill, which is the answer to a call that waits for one. */
static void stop_listening(struct warden *warden, struct cell *cell)
{
    scout_forget(warden, cell);
    loop_forget(warden, &cell->listener);
    loop_forget(warden, &cell->oom);
}

static void free_cell(struct warden *warden, struct cell *cell)
{
    struct watch *watches[] = {&cell->run,     &cell->init_talk, &cell->talk, &cell->init,
                               &cell->program, &cell->listener,  &cell->oom,  &cell->count};
    scout_forget(warden, cell);
    emptier_forget(warden, cell);
    account_close(warden, cell);
    for (unsigned i = 0; i < ARRAY_LEN(watches); i++)
        loop_forget(warden, watches[i]);
    streams_close(cell);
    for (int i = 0; i < SLOT_NAMESPACES; i++)
        cleanup_close(&cell->slot[i]);
    if (cell->identity)
        identity_release(cell->identity, cell);
    cleanup_close(&cell->plan_fd);
    cleanup_close(&cell->forked_talk);
    cleanup_close(&cell->lifeline);
    cleanup_close(&cell->gate);
    cleanup_close(&cell->work_fd);
    for (unsigned i = 0; i < PLAN_MOUNT_MAX; i++) {
        cleanup_close(&cell->mount_fds[i]);
        free((char *)cell->mounts[i].source);
    }
    cgroup_close(&cell->cgroup);
    plan_unmap(&cell->plan);
    free(cell->observed);
    free(cell->denials);
    *cell->link = cell->next;
    if (cell->next)
        cell->next->link = cell->link;
    free(cell);
}

void cell_collect(struct warden *warden)
{
    for (struct cell *cell = warden->cells, *next; cell; cell = next) {
        next = cell->next;
        if (cell->gone)
            free_cell(warden, cell);
    }
}

/* A process that could not be watched is still a child: killed by its pid, which is its own until it is reaped. */
static void reap_unwatched(const struct watch *watch, pid_t pid, bool *reaped)
{
    if (*reaped || pid <= 0 || watch->fd >= 0)
        return;
    kill(pid, SIGKILL);
    *reaped = waitpid(pid, NULL, WNOHANG | __WALL) != 0;
}

/* After the end: both processes reaped, then the groups removed. A group may stay busy for a moment after its last
 * process was reaped. */
void cell_clear_away(struct warden *warden, struct cell *cell, uint64_t now_us)
{
    bool first = !cell->put_down;
    if (first) {
        cell_leave_caller(warden, cell);
        cell_put_down(warden, cell);
    }
    stop_listening(warden, cell);
    if (cell->being_made && (warden->leaving || now_us >= cell->patience_us))
        maker_stop(warden);
    if (cell->being_made) {
        cell->retry_us = now_us + RETRY_US;
        return;
    }
    reap_unwatched(&cell->program, cell->program_pid, &cell->program_reaped);
    reap_unwatched(&cell->init, cell->init_pid, &cell->init_reaped);
    if (now_us >= slot_patience_ends(cell))
        slot_come_forward(cell);
    if ((cell->program_pid > 0 && !cell->program_reaped) || (cell->init_pid > 0 && !cell->init_reaped)) {
        /* The pidfds wake the loop; this is for one that gets no processor, or a lost kill. */
        cell->retry_us = cell->stands_back ? slot_patience_ends(cell) : now_us + STUCK_RETRIES * RETRY_US;
        if (!first) {
            cell_kill_processes(cell);
            pool_look_for_strangers(warden);
        }
        return;
    }
    if (!warden->leaving && emptier_takes(warden, cell)) {
        cell->retry_us = now_us + STUCK_RETRIES * RETRY_US; /* the end of the emptying comes sooner */
        return;
    }
    if (cgroup_remove(&warden->cgroups, &cell->cgroup) < 0 && errno == EBUSY) {
        cell->retry_us = now_us + RETRY_US;
        return;
    }
    cell->gone = true;
    cell->retry_us = UINT64_MAX;
}
