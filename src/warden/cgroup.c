/* Owns the choice between v1, v2 and none, the names of groups, and the sweep of what dead wardens left. */
#include "warden/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* Pid and start time (t) of the warden, and the number (n) of the pid namespace that they are meant in. */
#define NAME_FORMAT "cordon-%d-t%llu-n%llx-"
/* An empty group of a warden that cannot be looked up, because it is in another pid namespace. So long no group is
 * empty while its warden lives: programs are in it, or are about to be. */
#define FOREIGN_AGE_S 3600

/* v2 has user and system time in one. */
static const struct counter_file {
    enum cgroup_controller controller;
    const char *v1, *v2;
    bool may_begin_anew; /* v1: by writing 0 */
} counter_files[CG_COUNTERS] = {[CG_CPU_TIME] = {CG_CPUACCT, "cpuacct.usage", "cpu.stat", true},
                                [CG_CPU_SYSTEM] = {CG_CPUACCT, "cpuacct.usage_sys", NULL},
                                [CG_MEMORY_PEAK] = {CG_MEMORY, "memory.max_usage_in_bytes", "memory.peak", true},
                                [CG_MEMORY_PARTS] = {CG_MEMORY, "memory.stat", "memory.stat"},
                                [CG_PIDS_PEAK] = {CG_PIDS, "pids.peak", "pids.peak"}};

/* A process is named by pid and start time, so that a reused pid is not taken for a living warden. 0 when dead. */
static unsigned long long start_time(pid_t pid)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (fd_read_text_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return 0;
    char *at = strrchr(text, ')'); /* the name before it may hold anything */
    unsigned long long start = 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        start = strtoull(at + 1, NULL, 10);
    return start;
}

static unsigned long long pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* Whether the warden that made this group is gone. Of other pid namespaces only cells' groups, which end in a number,
 * can be told by their age; those that serve many cells may be empty for long. */
static bool is_abandoned(int directory, const char *name)
{
    int pid, length = 0;
    unsigned long long start, space;
    struct stat st;
    if (sscanf(name, NAME_FORMAT "%n", &pid, &start, &space, &length) != 3 || !length)
        return false;
    if (space == pid_namespace())
        return start_time(pid) != start;
    return !name[length + strspn(name + length, "0123456789")] &&
           fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - st.st_mtime > FOREIGN_AGE_S;
}

/* Groups of a warden that is gone are empty: its cells died with it. One that is not empty is left for later. */
static void sweep(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (is_abandoned(directory, entry->d_name))
            unlinkat(directory, entry->d_name, AT_REMOVEDIR);
    closedir(dir);
}

/* By the count of links, which spares reading the directory. */
static bool holds_more_than(int directory, unsigned groups)
{
    struct stat st;
    return fstat(directory, &st) < 0 || st.st_nlink < 2 || st.st_nlink - 2 > groups;
}

/* Wardens that share the group of one controller need not share that of another: each is looked through. */
void cgroup_sweep(const struct cgroup_root *root, unsigned own)
{
    for (int i = 0; i < CG_CONTROLLERS; i++)
        if (root->dirs[i] >= 0 && holds_more_than(root->dirs[i], own))
            sweep(root->dirs[i]);
    if (root->io_dir >= 0 && holds_more_than(root->io_dir, own))
        sweep(root->io_dir);
}

void cgroup_root_find(struct cgroup_root *root)
{
    *root = (struct cgroup_root){.dirs = {-1, -1, -1, -1}, .io_dir = -1};
    snprintf(root->prefix, sizeof root->prefix, NAME_FORMAT, getpid(), start_time(getpid()), pid_namespace());
    char mounts[16384] = "", groups[4096] = "";
    fd_read_text_at(AT_FDCWD, "/proc/self/mounts", mounts, sizeof mounts);
    fd_read_text_at(AT_FDCWD, "/proc/self/cgroup", groups, sizeof groups);
    if (cgroup_v2_find(root, mounts, groups) || cgroup_v1_find(root, mounts, groups))
        cgroup_io_find(root, mounts);
}

const char *cgroup_next_line(const char *line)
{
    line = strchr(line, '\n');
    return line && line[1] ? line + 1 : NULL;
}

int cgroup_create(struct cgroup_root *root, unsigned number, struct cgroup *cgroup)
{
    *cgroup = CGROUP_EMPTY;
    cgroup->kind = root->kind;
    snprintf(cgroup->name, sizeof cgroup->name, "%s%u", root->prefix, number);
    if (root->kind == CGROUP_NONE)
        return 0;
    int made = root->kind == CGROUP_V1 ? cgroup_v1_create(root, cgroup) : cgroup_v2_create(root, cgroup);
    if (made == 0) {
        cgroup_io_take(root, cgroup);
        cgroup->io_bounded |= cgroup->io != NULL;
        return 0;
    }
    int saved = errno;
    cgroup_remove(root, cgroup);
    cgroup_close(cgroup);
    errno = saved;
    return -1;
}

int cgroup_limit(const struct cgroup *cgroup, const int64_t *limit)
{
    if (cgroup->kind == CGROUP_NONE)
        return 0;
    return cgroup->kind == CGROUP_V1 ? cgroup_v1_limit(cgroup, limit) : cgroup_v2_limit(cgroup, limit);
}

/* The text of a counter, from the open file or the one of its name. */
static bool read_counter(const struct cgroup *cgroup, enum cgroup_counter counter, char *text, size_t size)
{
    int fd = cgroup->counters[counter];
    const struct counter_file *file = &counter_files[counter];
    bool v1 = cgroup->kind == CGROUP_V1;
    *text = '\0';
    if (fd < 0)
        return fd_read_text_at(v1 ? cgroup->dirs[file->controller] : cgroup->dirs[0], v1 ? file->v1 : file->v2, text,
                               size) > 0;
    ssize_t n = pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static uint64_t read_counter_number(const struct cgroup *cgroup, enum cgroup_counter counter)
{
    char text[64];
    return read_counter(cgroup, counter, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* The number after `key` in a text of "key number" lines. */
static uint64_t find_key(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = cgroup_next_line(line))
        if (!strncmp(line, key, length) && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
    return 0;
}

static void read_cpu(const struct cgroup *cgroup, uint64_t *user_us, uint64_t *system_us)
{
    char text[1024];
    if (cgroup->kind == CGROUP_V1) { /* the total is exact, the split is counted in ticks */
        uint64_t total = read_counter_number(cgroup, CG_CPU_TIME) / 1000;
        *system_us = read_counter_number(cgroup, CG_CPU_SYSTEM) / 1000;
        if (*system_us > total)
            *system_us = total;
        *user_us = total - *system_us;
        return;
    }
    read_counter(cgroup, CG_CPU_TIME, text, sizeof text);
    *user_us = find_key(text, "user_usec");
    *system_us = find_key(text, "system_usec");
}

void cgroup_open_counters(struct cgroup *cgroup)
{
    bool v1 = cgroup->kind == CGROUP_V1;
    for (int i = 0; i < CG_COUNTERS && cgroup->kind != CGROUP_NONE; i++)
        if (v1 || counter_files[i].v2)
            cgroup->counters[i] = openat(v1 ? cgroup->dirs[counter_files[i].controller] : cgroup->dirs[0],
                                         v1 ? counter_files[i].v1 : counter_files[i].v2,
                                         (v1 && counter_files[i].may_begin_anew ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

void cgroup_read(const struct cgroup *cgroup, const int64_t *limit, struct cgroup_counters *counters)
{
    *counters = (struct cgroup_counters){0};
    if (cgroup->kind == CGROUP_NONE)
        return;
    bool v1 = cgroup->kind == CGROUP_V1;
    read_cpu(cgroup, &counters->cpu_user_us, &counters->cpu_system_us);
    counters->memory_peak_bytes = read_counter_number(cgroup, CG_MEMORY_PEAK);
    counters->processes_peak = read_counter_number(cgroup, CG_PIDS_PEAK);
    /* A single charge is far smaller than half of any limit; a kernel without a peak tells 0. */
    if (!counters->memory_peak_bytes || counters->memory_peak_bytes >= (uint64_t)limit[LIMIT_MEMORY_BYTES] / 2)
        counters->oom_kills = cgroup_oom_kills(cgroup);
    if (!counters->processes_peak || counters->processes_peak >= (uint64_t)limit[LIMIT_PROCESSES])
        counters->process_refusals = cgroup_read_key(cgroup->dirs[v1 ? CG_PIDS : 0], "pids.events", "max");
}

void cgroup_begin(const struct cgroup *cgroup, uint64_t *user_us, uint64_t *system_us)
{
    *user_us = *system_us = 0;
    if (cgroup->kind == CGROUP_V1) {
        for (int i = 0; i < CG_COUNTERS; i++)
            if (counter_files[i].may_begin_anew)
                (void)!pwrite(cgroup->counters[i], "0", 1, 0);
    } else if (cgroup->kind == CGROUP_V2)
        read_cpu(cgroup, user_us, system_us);
}

int cgroup_watch_memory(const struct cgroup *cgroup)
{
    return cgroup->kind == CGROUP_V1 ? cgroup_v1_watch_memory(cgroup)
                                     : openat(cgroup->dirs[0], "memory.events", O_RDONLY | O_CLOEXEC);
}

uint64_t cgroup_oom_kills(const struct cgroup *cgroup)
{
    bool v1 = cgroup->kind == CGROUP_V1;
    return cgroup_read_key(cgroup->dirs[v1 ? CG_MEMORY : 0], v1 ? "memory.oom_control" : "memory.events", "oom_kill");
}

uint64_t cgroup_memory_now(const struct cgroup *cgroup)
{
    if (cgroup->kind == CGROUP_V1)
        return cgroup_read_number(cgroup->dirs[CG_MEMORY], "memory.usage_in_bytes");
    return cgroup->kind == CGROUP_V2 ? cgroup_read_number(cgroup->dirs[0], "memory.current") : 0;
}

/* v1 calls anonymous pages `rss`, although pages of files are in the resident set too. A cell's group has none beneath
 * it, so the group's own numbers are the whole. */
uint64_t cgroup_program_memory(const struct cgroup *cgroup)
{
    char text[4096];
    if (cgroup->kind == CGROUP_NONE || !read_counter(cgroup, CG_MEMORY_PARTS, text, sizeof text))
        return 0;
    return find_key(text, cgroup->kind == CGROUP_V1 ? "rss" : "anon") + find_key(text, "shmem");
}

uint64_t cgroup_cpu_us(const struct cgroup *cgroup)
{
    if (cgroup->kind == CGROUP_V1)
        return cgroup_read_number(cgroup->dirs[CG_CPUACCT], "cpuacct.usage") / 1000;
    return cgroup_read_key(cgroup->dirs[0], "cpu.stat", "usage_usec");
}

void cgroup_kill(const struct cgroup *cgroup)
{
    if (cgroup->kind == CGROUP_V2)
        fd_write_text_at(cgroup->dirs[0], "cgroup.kill", "1");
}

void cgroup_set_idle(const struct cgroup *cgroup, bool idle)
{
    if (cgroup->kind != CGROUP_NONE)
        fd_write_text_at(cgroup->dirs[cgroup->kind == CGROUP_V1 ? CG_CPU : 0], "cpu.idle", idle ? "1" : "0");
}

int cgroup_remove(const struct cgroup_root *root, struct cgroup *cgroup)
{
    int failed = 0;
    for (int i = 0; i < CG_CONTROLLERS; i++)
        if (cgroup->kind != CGROUP_NONE && root->dirs[i] >= 0 &&
            unlinkat(root->dirs[i], cgroup->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            failed = errno;
    if (failed)
        errno = failed;
    return failed ? -1 : 0;
}

/* Whoever forks into a group needs to write the list of processes of that group and of the nearest one that is above
 * both; of nothing else. */
int cgroup_admit(const struct cgroup_root *root, const struct cgroup *cgroup, uid_t owner)
{
    if (root->kind != CGROUP_V2 || owner == 0)
        return 0;
    if (fchownat(root->dirs[0], "cgroup.procs", owner, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return fchownat(cgroup->dirs[0], "cgroup.procs", owner, (gid_t)-1, AT_SYMLINK_NOFOLLOW);
}

static void zygotes_name(const struct cgroup_root *root, char *name, size_t size)
{
    snprintf(name, size, "%szygotes", root->prefix);
}

int cgroup_open_zygotes(const struct cgroup_root *root)
{
    char name[96];
    zygotes_name(root, name, sizeof name);
    if (root->kind != CGROUP_V2 || (mkdirat(root->dirs[0], name, 0755) < 0 && errno != EEXIST))
        return -1;
    return openat(root->dirs[0], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cgroup_remove_zygotes(const struct cgroup_root *root)
{
    char name[96];
    zygotes_name(root, name, sizeof name);
    if (root->kind == CGROUP_V2)
        unlinkat(root->dirs[0], name, AT_REMOVEDIR);
}

void cgroup_joined(struct cgroup *cgroup)
{
    for (int i = 0; i < CG_CONTROLLERS; i++)
        cleanup_close(&cgroup->join_files[i]), cgroup->join_files[i] = -1;
}

void cgroup_close(struct cgroup *cgroup)
{
    for (int i = 0; i < CG_CONTROLLERS; i++)
        cleanup_close(&cgroup->dirs[i]), cgroup->dirs[i] = -1;
    for (int i = 0; i < CG_COUNTERS; i++)
        cleanup_close(&cgroup->counters[i]), cgroup->counters[i] = -1;
    cgroup_joined(cgroup);
    cgroup_io_leave(cgroup);
}

int cgroup_write_number(int dir, const char *file, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return fd_write_text_at(dir, file, text);
}

uint64_t cgroup_read_number(int dir, const char *file)
{
    char text[64];
    return fd_read_text_at(dir, file, text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

uint64_t cgroup_read_key(int dir, const char *file, const char *key)
{
    char text[2048];
    return fd_read_text_at(dir, file, text, sizeof text) > 0 ? find_key(text, key) : 0;
}
