/* Reads the memory limits of the control groups above this process: of version 1 the hierarchical limit, which the
 * kernel reports in one file, of version 2 the limit of each group up to the root. Called once, when the daemon is
 * opened, while the files can still be read. */
#include "service/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PATH_SIZE 4096

static void cleanup_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

/* The number behind `name` in a file of lines; without a name, the first of the file. UINT64_MAX when there is none,
 * or "max". */
static uint64_t read_number(const char *path, const char *name)
{
    __attribute__((cleanup(cleanup_file))) FILE *file = fopen(path, "re");
    char line[256];
    size_t length = strlen(name);
    while (file && fgets(line, sizeof line, file)) {
        char *end;
        if (strncmp(line, name, length) != 0)
            continue;
        unsigned long long value = strtoull(line + length, &end, 10);
        return end > line + length ? value : UINT64_MAX;
    }
    return UINT64_MAX;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Cuts the path at each of its groups. */
static uint64_t limit_v2(char *group)
{
    uint64_t least = UINT64_MAX;
    while (*group) {
        char path[PATH_SIZE + 64];
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        least = smaller(least, read_number(path, ""));
        char *slash = strrchr(group, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return least;
}

static uint64_t limit_v1(const char *group)
{
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.stat", group);
    uint64_t limit = read_number(path, "hierarchical_memory_limit ");
    if (limit != UINT64_MAX)
        return limit;
    /* In a container the path may be the host's, of which the own group is all that is mounted. */
    return read_number("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit ");
}

static uint64_t limit_of_groups(void)
{
    __attribute__((cleanup(cleanup_file))) FILE *file = fopen("/proc/self/cgroup", "re");
    uint64_t least = UINT64_MAX;
    char line[PATH_SIZE];
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        group[strcspn(group, "\n")] = '\0';
        if (strncmp(controllers, "::", 2) == 0)
            least = smaller(least, limit_v2(group + 1));
        else if (strncmp(controllers, ":memory:", 8) == 0)
            least = smaller(least, limit_v1(group + 1));
    }
    return least;
}

uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 30;
    return smaller(all, limit_of_groups());
}
