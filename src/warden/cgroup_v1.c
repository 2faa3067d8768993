/* Groups on cgroup v1: one directory in each of four hierarchies, beneath the warden's own groups. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "warden/cgroup.h"

static const char *const controllers[CG_CONTROLLERS] = {"memory", "pids", "cpu", "cpuacct"};

/* Whether `word` is one of the comma-separated words that end at a space or a colon. */
static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (;;) {
        size_t span = strcspn(words, ", :\n");
        if (span == length && !strncmp(words, word, length))
            return true;
        if (words[span] != ',')
            return false;
        words += span + 1;
    }
}

/* Where the hierarchy with this controller is mounted, and this process's group in it, as one path. */
static bool own_group(const char *mounts, const char *groups, const char *controller, char *path, size_t size)
{
    char place[256] = "";
    for (const char *line = mounts; line && !*place; line = cgroup_next_line(line)) {
        char where[256], type[32];
        int options = 0;
        if (sscanf(line, "%*s %255s %31s %n", where, type, &options) == 2 && options && !strcmp(type, "cgroup") &&
            has_word(line + options, controller))
            memcpy(place, where, sizeof place);
    }
    for (const char *line = groups; line && *place; line = cgroup_next_line(line)) {
        const char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (group && has_word(names + 1, controller))
            return (size_t)snprintf(path, size, "%s%.*s", place, (int)strcspn(group + 1, "\n"), group + 1) < size;
    }
    return false;
}

bool cgroup_v1_find(struct cgroup_root *root, const char *mounts, const char *groups)
{
    for (int i = 0; i < CG_CONTROLLERS; i++) {
        char path[512];
        if (!own_group(mounts, groups, controllers[i], path, sizeof path)) {
            root->error = ENOENT;
            root->cause =
                root->cause ? root->cause : "no cgroup hierarchy with memory, pids, cpu and cpuacct is mounted";
            goto none;
        }
        root->dirs[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (root->dirs[i] < 0 || faccessat(root->dirs[i], ".", W_OK, AT_EACCESS) < 0) {
            root->error = errno;
            root->cause = "the cgroup v1 hierarchies are not writable for this user";
            goto none;
        }
    }
    root->kind = CGROUP_V1;
    char path[512];
    if (own_group(mounts, groups, "blkio", path, sizeof path))
        root->io_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return true;
none:
    for (int i = 0; i < CG_CONTROLLERS; i++) {
        cleanup_close(&root->dirs[i]);
        root->dirs[i] = -1;
    }
    return false;
}

static int set_memory(int dir, const int64_t *limit)
{
    if (MUTANT(MEMORY))
        return 0;
    int64_t bytes = limit[LIMIT_MEMORY_BYTES];
    /* The limit may never be above the one with swap: which goes first depends on the direction. */
    if (cgroup_write_number(dir, "memory.limit_in_bytes", bytes) < 0 &&
        (errno != EINVAL || cgroup_write_number(dir, "memory.memsw.limit_in_bytes", bytes) < 0 ||
         cgroup_write_number(dir, "memory.limit_in_bytes", bytes) < 0))
        return -1;
    /* Swap counts within the same limit. Without swap accounting that file does not exist, and swapping is discouraged.
     */
    if (cgroup_write_number(dir, "memory.memsw.limit_in_bytes", bytes) < 0) {
        if (errno != ENOENT && errno != EOPNOTSUPP)
            return -1;
        cgroup_write_number(dir, "memory.swappiness", 0);
    }
    /* Socket buffers are outside the memory limit on v1; they get a quarter of it, at most 16 MiB. */
    int64_t sockets = bytes / 4 < 16 << 20 ? bytes / 4 : 16 << 20;
    if (MUTANT(TCP_BUFFERS))
        return 0;
    return cgroup_write_number(dir, "memory.kmem.tcp.limit_in_bytes", sockets) < 0 && errno != ENOENT ? -1 : 0;
}

static int set_cpu(int dir, int64_t milli_cpus)
{
    if (MUTANT(CPU))
        return 0;
    /* A new group's period is 100 ms; it may have been made with another quota than the request's. */
    return cgroup_write_number(dir, "cpu.cfs_quota_us", milli_cpus == LIMIT_UNLIMITED ? -1 : 100 * milli_cpus);
}

/* The eventfd wakes when the group meets its limit and the kernel is about to kill in it. */
int cgroup_v1_watch_memory(const struct cgroup *cgroup)
{
    int dir = cgroup->dirs[CG_MEMORY];
    auto_close int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    auto_close int control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    char text[64];
    if (event < 0 || control < 0)
        return -1;
    snprintf(text, sizeof text, "%d %d", event, control);
    if (fd_write_text_at(dir, "cgroup.event_control", text) < 0)
        return -1;
    return take_fd(&event);
}

int cgroup_v1_create(const struct cgroup_root *root, struct cgroup *cgroup)
{
    for (int i = 0; i < CG_CONTROLLERS; i++) {
        if (mkdirat(root->dirs[i], cgroup->name, 0755) < 0)
            return -1;
        cgroup->dirs[i] = openat(root->dirs[i], cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cgroup->join_files[i] = cgroup->dirs[i] < 0 ? -1 : openat(cgroup->dirs[i], "tasks", O_WRONLY | O_CLOEXEC);
        if (cgroup->join_files[i] < 0)
            return -1;
    }
    return 0;
}

int cgroup_v1_limit(const struct cgroup *cgroup, const int64_t *limit)
{
    if (set_memory(cgroup->dirs[CG_MEMORY], limit) < 0 || set_cpu(cgroup->dirs[CG_CPU], limit[LIMIT_CPUS]) < 0)
        return -1;
    return MUTANT(PROCESSES) ? 0 : cgroup_write_number(cgroup->dirs[CG_PIDS], "pids.max", limit[LIMIT_PROCESSES]);
}
