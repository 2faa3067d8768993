/* What a cell used: from its cgroup, or without one from /proc samples and the kernel's account of its processes. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "warden/warden.h"

uint64_t account_cpu_us(struct cell *cell)
{
    return cell->cgroup.kind == CGROUP_NONE ? cell->sampled_peak.cpu_us : cgroup_cpu_us(&cell->cgroup);
}

void account_disk(struct cell *cell, struct usage *usage)
{
    struct statfs fs;
    if (cell->work_fd < 0 || fstatfs(cell->work_fd, &fs) < 0)
        return;
    usage->disk_bytes = (fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    usage->inodes = fs.f_files - fs.f_ffree;
    if (fs.f_bfree == 0)
        cell->hits |= HIT_DISK_BYTES;
    if (fs.f_ffree == 0)
        cell->hits |= HIT_INODES;
}

struct totals {
    uint64_t rss_bytes, cpu_us, processes;
};

static uint64_t field(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Proportional share, read only when the plain sum is over the limit: shared pages must not be counted per process. */
static uint64_t pss_bytes(pid_t pid)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    return fd_read_text_at(AT_FDCWD, path, text, sizeof text) > 0 ? field(text, "\nPss:") * 1024 : 0;
}

static void add_process(pid_t pid, struct totals *totals, bool exact)
{
    char path[48], text[2048];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (fd_read_text_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return;
    totals->processes += field(text, "\nThreads:");
    totals->rss_bytes +=
        exact ? pss_bytes(pid) : (field(text, "\nRssAnon:") + field(text, "\nRssShmem:")) * 1024;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (fd_read_text_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return;
    char *at = strrchr(text, ')');
    unsigned long long user = 0, system = 0, waited_user = 0, waited_system = 0;
    if (at)
        sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user, &system, &waited_user,
               &waited_system);
    totals->cpu_us += (user + system + waited_user + waited_system) * 1000000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

/* Every process of the cell descends from the program or was handed to init; both lists are the kernel's. */
static void add_tree(pid_t pid, struct totals *totals, bool exact, unsigned depth)
{
    if (depth > 64 || totals->processes > 100000)
        return;
    if (depth > 0)
        add_process(pid, totals, exact);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    struct dirent *entry;
    while ((entry = readdir(tasks))) {
        char children[8192], file[300];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "/proc/%d/task/%s/children", pid, entry->d_name);
        if (fd_read_text_at(AT_FDCWD, file, children, sizeof children) <= 0)
            continue;
        char *end = children;
        for (long child; (child = strtol(end, &end, 10)) > 0;)
            add_tree((pid_t)child, totals, exact, depth + 1);
    }
    closedir(tasks);
}

static struct totals total(const struct cell *cell, bool exact)
{
    struct totals totals = {0};
    add_process(cell->program_pid, &totals, exact);
    add_tree(cell->program_pid, &totals, exact, 0);
    add_tree(cell->init_pid, &totals, exact, 0);
    return totals;
}

void account_sample(struct cell *cell)
{
    struct usage disk = {0};
    account_disk(cell, &disk);
    if (cell->cgroup.kind != CGROUP_NONE)
        return;
    uint64_t limit = (uint64_t)cell->plan.limit[LIMIT_MEMORY_BYTES];
    struct totals now = total(cell, false);
    if (now.rss_bytes + disk.disk_bytes > limit)
        now = total(cell, true);
    uint64_t memory = now.rss_bytes + disk.disk_bytes;
    struct sample *peak = &cell->sampled_peak;
    if (memory > peak->memory_bytes)
        peak->memory_bytes = memory;
    if (now.processes > peak->processes)
        peak->processes = now.processes;
    if (now.cpu_us > peak->cpu_us)
        peak->cpu_us = now.cpu_us;
    if (memory > limit)
        cell->hits |= HIT_MEMORY;
}

void account_final(struct cell *cell, struct usage *usage, uint64_t *oom_kills)
{
    *usage = (struct usage){.wall_us = cell->ended_us - cell->started_us};
    *oom_kills = 0;
    account_disk(cell, usage);
    if (cell->cgroup.kind == CGROUP_NONE) {
        usage->cpu_user_us = cell->rusage_user_us;
        usage->cpu_system_us = cell->rusage_system_us;
        if (cell->sampled_peak.cpu_us > usage->cpu_user_us + usage->cpu_system_us)
            usage->cpu_user_us = cell->sampled_peak.cpu_us - usage->cpu_system_us;
        usage->memory_peak_bytes = cell->sampled_peak.memory_bytes > cell->rusage_peak_bytes
                                       ? cell->sampled_peak.memory_bytes
                                       : cell->rusage_peak_bytes;
        usage->processes_peak = cell->sampled_peak.processes > 1 ? cell->sampled_peak.processes : 1;
        return;
    }
    struct cgroup_counters counters;
    cgroup_read(&cell->cgroup, &counters);
    usage->cpu_user_us = counters.cpu_user_us;
    usage->cpu_system_us = counters.cpu_system_us;
    usage->memory_peak_bytes = counters.memory_peak_bytes;
    usage->processes_peak = counters.processes_peak;
    *oom_kills = counters.oom_kills;
    if (counters.process_refusals)
        cell->hits |= HIT_PROCESSES;
    if (counters.oom_kills)
        cell->hits |= HIT_MEMORY;
}
