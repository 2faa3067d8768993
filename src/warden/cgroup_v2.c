/* Groups on cgroup v2. Cells need a parent that has the controllers in its subtree_control and no processes of its own,
 * so the warden moves itself into a leaf of the delegated group first; the superuser may also start beneath the root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "warden/cgroup.h"

static const char *const needed[] = {"memory", "pids", "cpu"};

static bool mounted_at(const char *mounts, char *path, size_t size)
{
    for (const char *line = mounts; line; line = cgroup_next_line(line)) {
        char where[256], type[32];
        if (sscanf(line, "%*s %255s %31s", where, type) == 2 && !strcmp(type, "cgroup2"))
            return (size_t)snprintf(path, size, "%s", where) < size;
    }
    return false;
}

static bool own_group(const char *groups, char *group, size_t size)
{
    for (const char *line = groups; line; line = cgroup_next_line(line))
        if (!strncmp(line, "0::", 3))
            return (size_t)snprintf(group, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3) < size;
    return false;
}

static bool has_words(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(text, words[i]);
        size_t length = strlen(words[i]);
        while (at && !((at == text || at[-1] == ' ') && strchr(" \n", at[length])))
            at = strstr(at + 1, words[i]);
        if (!at)
            return false;
    }
    return true;
}

static bool offers_controllers(int dir)
{
    char text[256];
    return fd_read_text_at(dir, "cgroup.controllers", text, sizeof text) > 0 &&
           has_words(text, needed, ARRAY_LEN(needed));
}

/* The io controller too, where it can be had: it is seldom delegated to ordinary users. */
static bool passes_controllers(int dir)
{
    static const char *const wanted[] = {"io"};
    char text[256] = "";
    fd_read_text_at(dir, "cgroup.subtree_control", text, sizeof text);
    if (!has_words(text, needed, ARRAY_LEN(needed)) &&
        fd_write_text_at(dir, "cgroup.subtree_control", "+memory +pids +cpu") < 0)
        return false;
    if (!has_words(text, wanted, ARRAY_LEN(wanted)))
        fd_write_text_at(dir, "cgroup.subtree_control", "+io");
    return true;
}

/* A group cannot both hold processes and pass controllers on. When it holds this warden and its caller alone, as a
 * scope made for one command does, both move to a leaf; a group with others in it is left as it is. */
static bool step_aside(int dir)
{
    char pids[256], self[16], caller[16];
    snprintf(self, sizeof self, "%d", getpid());
    snprintf(caller, sizeof caller, "%d", getppid());
    if (fd_read_text_at(dir, "cgroup.procs", pids, sizeof pids) <= 0)
        return false;
    char *save = NULL;
    for (char *pid = strtok_r(pids, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save))
        if (strcmp(pid, self) != 0 && strcmp(pid, caller) != 0)
            return false;
    if (mkdirat(dir, "cordon-warden", 0755) < 0 && errno != EEXIST)
        return false;
    return fd_write_text_at(dir, "cordon-warden/cgroup.procs", caller) == 0 &&
           fd_write_text_at(dir, "cordon-warden/cgroup.procs", "0") == 0;
}

static bool take(struct cgroup_root *root, const char *path, bool aside)
{
    auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || faccessat(dir, ".", W_OK, AT_EACCESS) < 0 || !offers_controllers(dir))
        return false;
    if (!passes_controllers(dir) && !(aside && step_aside(dir) && passes_controllers(dir)))
        return false;
    root->dirs[0] = take_fd(&dir);
    root->kind = CGROUP_V2;
    return true;
}

bool cgroup_v2_find(struct cgroup_root *root, const char *mounts, const char *groups)
{
    char mount[256], group[512], path[1024];
    if (!mounted_at(mounts, mount, sizeof mount))
        return false;
    auto_close int top = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || !offers_controllers(top))
        return false; /* a hybrid host: the controllers are on v1 */
    if (own_group(groups, group, sizeof group)) {
        snprintf(path, sizeof path, "%s%s", mount, group);
        if (take(root, path, true))
            return true;
        /* A service's own leaf, such as an earlier warden's: its parent may be the delegated group. */
        char *slash = strrchr(path, '/');
        if (slash && (size_t)(slash - path) > strlen(mount)) {
            *slash = '\0';
            if (take(root, path, false))
                return true;
        }
    }
    if (geteuid() == 0) {
        snprintf(path, sizeof path, "%s/cordon", mount);
        if (passes_controllers(top) && (mkdir(path, 0755) == 0 || errno == EEXIST) && take(root, path, false))
            return true;
    }
    root->error = EACCES;
    root->cause = "no cgroup v2 group with memory, pids and cpu is delegated to this user";
    return false;
}

int cgroup_v2_limit(const struct cgroup *cgroup, const int64_t *limit)
{
    int dir = cgroup->dirs[0];
    if (!MUTANT(MEMORY)) {
        if (cgroup_write_number(dir, "memory.max", limit[LIMIT_MEMORY_BYTES]) < 0)
            return -1;
        if (cgroup_write_number(dir, "memory.swap.max", 0) < 0 && errno != ENOENT)
            return -1;
        fd_write_text_at(dir, "memory.oom.group", "1");
    }
    if (!MUTANT(PROCESSES) && cgroup_write_number(dir, "pids.max", limit[LIMIT_PROCESSES]) < 0)
        return -1;
    if (MUTANT(CPU))
        return 0;
    if (limit[LIMIT_CPUS] == LIMIT_UNLIMITED)
        return fd_write_text_at(dir, "cpu.max", "max");
    char text[48];
    snprintf(text, sizeof text, "%lld 100000", (long long)(limit[LIMIT_CPUS] * 100));
    return fd_write_text_at(dir, "cpu.max", text);
}

int cgroup_v2_create(const struct cgroup_root *root, struct cgroup *cgroup)
{
    if (mkdirat(root->dirs[0], cgroup->name, 0755) < 0)
        return -1;
    cgroup->dirs[0] = openat(root->dirs[0], cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->dirs[0] < 0)
        return -1;
    cgroup->io_bounded = *root->io_device && cgroup_io_bound_v2(cgroup->dirs[0], root->io_device) == 0;
    return 0;
}
