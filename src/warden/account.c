/* What a cell used: from its cgroup, or without one from /proc samples and the kernel's account of its processes. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/steps.h"
#include "warden/warden.h"

static uint64_t less(uint64_t total, uint64_t before)
{
    return total > before ? total - before : 0;
}

uint64_t account_cpu_us(struct cell *cell)
{
    if (cell->cgroup.kind == CGROUP_NONE)
        return less(cell->sampled_peak.cpu_us, cell->before.cpu_user_us);
    return less(cgroup_cpu_us(&cell->cgroup), cell->before.cpu_user_us + cell->before.cpu_system_us);
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

/* Memory files (memfd) seen in one sample, so that one that many processes hold counts once. The number is bounded, for
 * the program decides how many there are. */
#define MEMORY_FILES_MAX 256
#define DESCRIPTORS_MAX  4096

struct totals {
    uint64_t anonymous_bytes, shared_bytes, file_bytes;
    uint64_t cpu_us, processes;
    ino_t seen[MEMORY_FILES_MAX];
    unsigned seen_count, descriptors;
};

static uint64_t field(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool seen_before(struct totals *totals, ino_t inode)
{
    for (unsigned i = 0; i < totals->seen_count; i++)
        if (totals->seen[i] == inode)
            return true;
    if (totals->seen_count < MEMORY_FILES_MAX)
        totals->seen[totals->seen_count++] = inode;
    return false;
}

/* Memory files are reachable through descriptors alone, mapped or not, and all live on one device of the kernel's own.
 */
static void add_memory_files(pid_t pid, struct totals *totals)
{
    static dev_t device;
    struct stat st;
    if (!device) {
        auto_close int own = memfd_create("cordon", MFD_CLOEXEC);
        if (own < 0 || fstat(own, &st) < 0)
            return;
        device = st.st_dev;
    }
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    struct dirent *entry;
    while (totals->descriptors < DESCRIPTORS_MAX && (entry = readdir(dir))) {
        totals->descriptors++;
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_dev == device &&
            !seen_before(totals, st.st_ino))
            totals->file_bytes += (uint64_t)st.st_blocks * 512;
    }
    closedir(dir);
}

/* `exact` reads proportional shares, which costs more and is done only when the plain sum is over the limit: a page
 * that ten processes share must not end a run by being counted ten times. */
static void add_memory(pid_t pid, const char *status, struct totals *totals, bool exact)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (exact && fd_read_text_at(AT_FDCWD, path, text, sizeof text) > 0) {
        totals->anonymous_bytes += field(text, "\nPss_Anon:") * 1024;
        totals->shared_bytes += field(text, "\nPss_Shmem:") * 1024;
        return;
    }
    totals->anonymous_bytes += field(status, "\nRssAnon:") * 1024;
    totals->shared_bytes += field(status, "\nRssShmem:") * 1024;
}

static void add_process(pid_t pid, struct totals *totals, bool exact)
{
    char path[48], text[2048];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (fd_read_text_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return;
    totals->processes += field(text, "\nThreads:");
    add_memory(pid, text, totals, exact);
    add_memory_files(pid, totals);
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

void account_begin(struct cell *cell)
{
    if (cell->cgroup.kind == CGROUP_NONE) {
        struct totals now = {0};
        add_process(cell->program_pid, &now, false);
        cell->before.cpu_user_us = now.cpu_us;
        return;
    }
    cgroup_begin(&cell->cgroup, &cell->before.cpu_user_us, &cell->before.cpu_system_us);
}

/* Every process of the cell descends from the program or was handed to init; both lists are the kernel's. */
static void add_tree(pid_t pid, struct totals *totals, bool exact, unsigned depth)
{
    if (depth > 512 || totals->processes > 100000)
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

/* Shared memory is either mapped or in a file (of the work directory, or a memory file), often both: the larger of the
 * two sums counts it once. */
static uint64_t memory_of(const struct totals *totals, uint64_t disk_bytes)
{
    uint64_t in_files = totals->file_bytes + disk_bytes;
    return totals->anonymous_bytes + (totals->shared_bytes > in_files ? totals->shared_bytes : in_files);
}

static void note_memory(struct cell *cell, uint64_t memory)
{
    if (memory > cell->sampled_peak.memory_bytes)
        cell->sampled_peak.memory_bytes = memory;
}

/* What the programs themselves hold. On a group that is one read of 7 us, made at every look at the clock and at the
 * end, where the program still has its memory if it waits in exit_group. */
static void note_program_memory(struct cell *cell)
{
    bool grouped = cell->cgroup.kind != CGROUP_NONE;
    uint64_t memory = grouped ? cgroup_program_memory(&cell->cgroup) : cell->sampled_peak.memory_bytes;
    if (memory > cell->program_peak_bytes)
        cell->program_peak_bytes = memory;
}

/* The exact count waits for locks that the program may hold, so a process of its own makes it. One that does not come
 * back in time is held up by the program, and the plain sum, which is over the limit, stands. */
#define COUNT_PATIENCE_US 500000

static void end_count(struct warden *warden, struct cell *cell)
{
    loop_forget(warden, &cell->count);
    /* It may be held up where no signal reaches it; then it is reaped when it comes back. */
    if (cell->count_pid > 0 && kill(cell->count_pid, SIGKILL) == 0 && waitpid(cell->count_pid, NULL, WNOHANG) == 0)
        pool_expect_stranger(warden);
    cell->count_pid = 0;
}

static void on_count(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    uint64_t memory = UINT64_MAX;
    bool counted = read(cell->count.fd, &memory, sizeof memory) == sizeof memory;
    end_count(warden, cell);
    if (counted)
        note_memory(cell, memory);
    if (!counted || memory > (uint64_t)cell->plan.limit[LIMIT_MEMORY_BYTES])
        cell->hits |= HIT_MEMORY;
}

static void start_count(struct warden *warden, struct cell *cell, uint64_t disk_bytes, uint64_t now_us)
{
    int ends[2];
    if (cell->count.fd >= 0 || pipe2(ends, O_CLOEXEC) < 0)
        return;
    auto_close int read_end = ends[0], write_end = ends[1];
    cell->count_pid = fork();
    if (cell->count_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        descriptors_keep(&write_end, 1);
        struct totals exact = total(cell, true);
        uint64_t memory = memory_of(&exact, disk_bytes);
        (void)!write(write_end, &memory, sizeof memory);
        _exit(0);
    }
    cell->count_deadline_us = now_us + COUNT_PATIENCE_US;
    if (cell->count_pid < 0 || loop_watch(warden, &cell->count, take_fd(&read_end), cell, on_count) < 0)
        cell->hits |= HIT_MEMORY;
}

void account_sample(struct warden *warden, struct cell *cell, uint64_t now_us)
{
    struct usage disk = {0};
    account_disk(cell, &disk);
    if (cell->cgroup.kind != CGROUP_NONE) {
        note_program_memory(cell);
        return;
    }
    struct totals now = total(cell, false);
    uint64_t memory = memory_of(&now, disk.disk_bytes);
    struct sample *peak = &cell->sampled_peak;
    if (now.processes > peak->processes)
        peak->processes = now.processes;
    if (now.cpu_us > peak->cpu_us)
        peak->cpu_us = now.cpu_us;
    if (memory > (uint64_t)cell->plan.limit[LIMIT_MEMORY_BYTES])
        start_count(warden, cell, disk.disk_bytes, now_us);
    else
        note_memory(cell, memory);
    if (cell->count.fd >= 0 && now_us > cell->count_deadline_us) {
        end_count(warden, cell);
        cell->hits |= HIT_MEMORY;
    }
}

void account_close(struct warden *warden, struct cell *cell)
{
    end_count(warden, cell);
}

void account_final(struct cell *cell, struct usage *usage, uint64_t *oom_kills)
{
    note_program_memory(cell);
    *usage = (struct usage){.wall_us = cell->ended_us - cell->started_us,
                            .memory_program_peak_bytes = cell->program_peak_bytes};
    *oom_kills = 0;
    account_disk(cell, usage);
    if (cell->cgroup.kind == CGROUP_NONE) {
        usage->cpu_user_us = less(cell->rusage_user_us, cell->before.cpu_user_us);
        usage->cpu_system_us = cell->rusage_system_us;
        uint64_t sampled = less(cell->sampled_peak.cpu_us, cell->before.cpu_user_us);
        if (sampled > usage->cpu_user_us + usage->cpu_system_us)
            usage->cpu_user_us = sampled - usage->cpu_system_us;
        usage->memory_peak_bytes = cell->sampled_peak.memory_bytes > cell->rusage_peak_bytes
                                       ? cell->sampled_peak.memory_bytes
                                       : cell->rusage_peak_bytes;
        usage->processes_peak = cell->sampled_peak.processes > 1 ? cell->sampled_peak.processes : 1;
        return;
    }
    struct cgroup_counters counters;
    cgroup_read(&cell->cgroup, cell->limit, &counters);
    usage->cpu_user_us = less(counters.cpu_user_us, cell->before.cpu_user_us);
    usage->cpu_system_us = less(counters.cpu_system_us, cell->before.cpu_system_us);
    usage->memory_peak_bytes = counters.memory_peak_bytes;
    /* The kernel adds up the parts with a delay, the whole without one. */
    if (counters.memory_peak_bytes && usage->memory_program_peak_bytes > counters.memory_peak_bytes)
        usage->memory_program_peak_bytes = counters.memory_peak_bytes;
    usage->processes_peak = counters.processes_peak;
    *oom_kills = counters.oom_kills;
    if (counters.process_refusals)
        cell->hits |= HIT_PROCESSES;
    if (counters.oom_kills)
        cell->hits |= HIT_MEMORY;
}
