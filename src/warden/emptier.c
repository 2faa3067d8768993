/* Empties control groups before the warden removes them. A page of /usr that a cell was the first to read stays charged
 * to its group, and the kernel keeps a removed group until the last such page is dropped: some 30 KiB each. To empty a
 * group before it is removed takes 4 ms and more, and drops pages that the next run may want, so the warden does so
 * only when many removed groups stay, with one child process at a time. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/steps.h"
#include "warden/warden.h"

/* They hold 60 MiB. With fewer, files that cells read first would be read from the disk again and again while memory is
 * plenty; with more, a program that reads ever new files costs the host more memory. */
#define DYING_MAX 2000
/* The count is read once for so many removals, for to read it costs 20 us. */
#define REMOVALS_PER_LOOK 64

/* v1 tells only how many groups a hierarchy has, removed ones included. No page stays with a group of the pids
 * controller, and whoever makes groups makes them in both. */
static uint64_t count_v1(void)
{
    char text[2048], name[32];
    unsigned long memory = 0, pids = 0, count;
    fd_read_text_at(AT_FDCWD, "/proc/cgroups", text, sizeof text);
    for (const char *line = text; line; line = cgroup_next_line(line)) {
        if (sscanf(line, "%31s %*u %lu", name, &count) != 2)
            continue;
        memory = strcmp(name, "memory") ? memory : count;
        pids = strcmp(name, "pids") ? pids : count;
    }
    return memory > pids ? memory - pids : 0;
}

static bool are_many(const struct cgroup_root *root)
{
    uint64_t count =
        root->kind == CGROUP_V1 ? count_v1() : cgroup_read_key(root->dirs[0], "cgroup.stat", "nr_dying_descendants");
    return count > DYING_MAX;
}

static void on_end(struct warden *warden, struct cell *none, uint32_t events)
{
    (void)none;
    (void)events;
    struct emptier *emptier = &warden->emptier;
    if (waitpid(emptier->pid, NULL, WNOHANG) == 0)
        return;
    loop_forget(warden, &emptier->watch);
    if (emptier->cell)
        emptier->cell->retry_us = 0;
    *emptier = (struct emptier){.watch.fd = -1, .many = emptier->many, .removals = emptier->removals};
}

/* v2 is told how much to take back; less than that is an error which says nothing. */
static _Noreturn void empty(const struct cgroup *group, uint64_t bytes)
{
    int dir = group->dirs[CG_MEMORY];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    descriptors_keep(&dir, 1);
    if (group->kind == CGROUP_V1)
        fd_write_text_at(dir, "memory.force_empty", "0");
    else
        cgroup_write_number(dir, "memory.reclaim", (int64_t)bytes);
    _exit(0);
}

static void start(struct warden *warden, struct cell *cell, uint64_t bytes)
{
    struct emptier *emptier = &warden->emptier;
    pid_t pid = fork();
    if (pid == 0)
        empty(&cell->cgroup, bytes);
    if (pid < 0)
        return;
    emptier->pid = pid;
    emptier->cell = cell;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (loop_watch(warden, &emptier->watch, pidfd, NULL, on_end) == 0)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    emptier->pid = 0;
    emptier->cell = NULL;
}

bool emptier_takes(struct warden *warden, struct cell *cell)
{
    struct emptier *emptier = &warden->emptier;
    if (emptier->cell == cell)
        return true;
    if (cell->emptied || cell->cgroup.kind == CGROUP_NONE || warden->leaving)
        return false;
    cell->emptied = true; /* one look a cell, whatever comes of it */
    if (emptier->removals++ % REMOVALS_PER_LOOK == 0)
        emptier->many = are_many(&warden->cgroups);
    uint64_t bytes = emptier->many && !emptier->pid ? cgroup_memory_now(&cell->cgroup) : 0;
    if (bytes)
        start(warden, cell, bytes);
    return emptier->cell == cell;
}

void emptier_forget(struct warden *warden, const struct cell *cell)
{
    if (warden->emptier.cell == cell)
        warden->emptier.cell = NULL;
}

void emptier_close(struct warden *warden)
{
    if (warden->emptier.pid) {
        kill(warden->emptier.pid, SIGKILL);
        waitpid(warden->emptier.pid, NULL, 0);
        loop_forget(warden, &warden->emptier.watch);
    }
}
