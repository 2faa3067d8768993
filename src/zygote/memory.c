/* Owns what is done to all memory around the fork of a zygote. */
#include "zygote/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PAGE          4096
#define PAGES_AT_ONCE 1024

struct mapping {
    uintptr_t from, to;
    const char *permissions; /* "rwxp" */
};

/* Calls `each` for every mapping of this process, in order; stops at the first negative result and returns it. */
static int each_mapping(int (*each)(const struct mapping *))
{
    auto_close int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0)
        return -errno;
    char text[8192];
    size_t held = 0;
    ssize_t n;
    while ((n = read(maps, text + held, sizeof text - 1 - held)) > 0) {
        held += (size_t)n;
        text[held] = '\0';
        char *line = text, *end;
        while ((end = strchr(line, '\n'))) { /* from-to perms ... */
            struct mapping mapping;
            char *at;
            mapping.from = strtoull(line, &at, 16);
            mapping.to = strtoull(at + 1, &at, 16);
            mapping.permissions = at + 1;
            int r = each(&mapping);
            if (r < 0)
                return r;
            line = end + 1;
        }
        held -= (size_t)(line - text);
        memmove(text, line, held);
        if (held == sizeof text - 1)
            return -E2BIG;
    }
    return n < 0 ? -errno : 0;
}

/* The kernel's own pages refuse the advice, or are out of its reach. */
static int inherit_one(const struct mapping *mapping)
{
    if (mapping->permissions[3] != 'p' || (intptr_t)mapping->from < 0)
        return 0;
    return madvise((void *)mapping->from, mapping->to - mapping->from, MADV_DOFORK) < 0 && errno != EINVAL ? -errno : 0;
}

int memory_inherit(void)
{
    return each_mapping(inherit_one);
}

/* Only pages that are there: what was reserved stays so. */
static int own_one(const struct mapping *mapping)
{
    unsigned char present[PAGES_AT_ONCE];
    if (memcmp(mapping->permissions, "rw-p", 4) != 0)
        return 0;
    for (uintptr_t from = mapping->from; from < mapping->to; from += PAGES_AT_ONCE * PAGE) {
        size_t pages = (mapping->to - from) / PAGE < PAGES_AT_ONCE ? (mapping->to - from) / PAGE : PAGES_AT_ONCE;
        if (mincore((void *)from, pages * PAGE, present) < 0)
            return -errno;
        for (size_t first = 0, end; first < pages; first = end + 1) {
            for (end = first; end < pages && present[end] & 1; end++)
                ;
            if (end > first && madvise((void *)(from + first * PAGE), (end - first) * PAGE, MADV_POPULATE_WRITE) < 0)
                return -errno;
        }
    }
    return 0;
}

int memory_own(void)
{
    return each_mapping(own_one);
}
