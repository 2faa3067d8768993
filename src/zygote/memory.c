/* Owns what is done to all memory around the fork of a zygote. */
#include "zygote/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PAGE           4096
#define PAGES_AT_ONCE  1024
#define GATHERED_LEAST 64 /* pages: for fewer a large page is too much to give */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct mapping {
    uintptr_t from, to;
    char permissions[5]; /* "rwxp" */
    uint64_t offset, device, inode;
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
            memcpy(mapping.permissions, at + 1, 4);
            mapping.permissions[4] = '\0';
            mapping.offset = strtoull(at + 6, &at, 16);
            mapping.device = strtoull(at + 1, &at, 16) << 32;
            mapping.device |= strtoull(at + 1, &at, 16);
            mapping.inode = strtoull(at + 1, &at, 10);
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

/* Calls `each` for every run of pages that are there; for a file's, which may be read in. */
static int each_run(const struct mapping *mapping, int (*each)(uintptr_t from, uintptr_t to))
{
    unsigned char present[PAGES_AT_ONCE];
    for (uintptr_t from = mapping->from; from < mapping->to; from += PAGES_AT_ONCE * PAGE) {
        size_t pages = (mapping->to - from) / PAGE < PAGES_AT_ONCE ? (mapping->to - from) / PAGE : PAGES_AT_ONCE;
        if (mincore((void *)from, pages * PAGE, present) < 0)
            return -errno;
        for (size_t first = 0, end; first < pages; first = end + 1) {
            for (end = first; end < pages && present[end] & 1; end++)
                ;
            int r = end > first ? each(from + first * PAGE, from + end * PAGE) : 0;
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static bool is_data(const struct mapping *mapping)
{
    return !memcmp(mapping->permissions, "rw-p", 4);
}

static int own_run(uintptr_t from, uintptr_t to)
{
    return madvise((void *)from, to - from, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

/* Only pages that are there: what was reserved stays so. */
static int own_one(const struct mapping *mapping)
{
    return is_data(mapping) ? each_run(mapping, own_run) : 0;
}

int memory_own(void)
{
    return each_mapping(own_one);
}

static bool is_file_text(const struct mapping *mapping)
{
    return mapping->inode && mapping->permissions[0] == 'r' && mapping->permissions[1] == '-' &&
           mapping->permissions[3] == 'p';
}

static bool follows(const struct mapping *mapping, const struct mapping *before)
{
    return before->to == mapping->from && before->device == mapping->device && before->inode == mapping->inode &&
           before->offset + (before->to - before->from) == mapping->offset;
}

static int protect(const struct mapping *mapping, int protection)
{
    return mprotect((void *)mapping->from, mapping->to - mapping->from, protection) < 0 ? -errno : 0;
}

/* What was written to once and then closed becomes one mapping with the data behind it again. */
static int join_data(const struct mapping *mapping)
{
    static struct mapping before;
    bool joined = mapping->inode && !memcmp(mapping->permissions, "rw-p", 4) &&
                  !memcmp(before.permissions, "r--p", 4) && follows(mapping, &before);
    struct mapping closed = before;
    before = *mapping;
    return joined ? protect(&closed, PROT_READ | PROT_WRITE) : 0;
}

/* What a file has before and after its text becomes one mapping with it. */
static int join_text(const struct mapping *mapping)
{
    static struct mapping before;
    bool joined = is_file_text(mapping) && is_file_text(&before) && follows(mapping, &before) &&
                  (before.permissions[2] == 'x' || mapping->permissions[2] == 'x');
    if (!joined) {
        before = *mapping;
        return 0;
    }
    int r = protect(&before, PROT_READ | PROT_EXEC);
    before.to = mapping->to;
    before.permissions[2] = 'x';
    return r < 0 ? r : protect(mapping, PROT_READ | PROT_EXEC);
}

/* Room for a copy, in large pages once it is full. The copy lies in them as what it is of does, so that what fills one
 * there fills one in its place. */
struct room {
    char *place, *copy;
    size_t whole, length;
};

static bool room_open(struct room *room, uintptr_t from, size_t length)
{
    size_t before = from & (LARGE_PAGE - 1), inner = large_page_up(before + length);
    *room = (struct room){.whole = inner + LARGE_PAGE, .length = length};
    room->place = mmap(NULL, room->whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room->place == MAP_FAILED)
        return false;
    char *begin = (char *)large_page_up((uintptr_t)room->place);
    room->copy = begin + before;
    madvise(begin, inner, MADV_HUGEPAGE);
    return true;
}

/* The copy takes the place of what it is of. In small pages, where a host has no others, it would gain nothing. */
static int room_close(struct room *room, uintptr_t from, int protection)
{
    uintptr_t begin = (uintptr_t)room->copy & ~(LARGE_PAGE - 1);
    char *end = room->copy + room->length;
    bool moved =
        madvise((void *)begin, large_page_up((uintptr_t)end) - begin, MADV_COLLAPSE) == 0 &&
        mprotect(room->copy, room->length, protection) == 0 &&
        mremap(room->copy, room->length, room->length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) != MAP_FAILED;
    int error = errno;
    if (!moved) {
        munmap(room->place, room->whole);
        return -error;
    }
    if (room->copy > room->place)
        munmap(room->place, (size_t)(room->copy - room->place));
    munmap(end, (size_t)(room->place + room->whole - end));
    return 0;
}

/* Its code may be running: it is the same there. */
static int copy_text(uintptr_t from, size_t length)
{
    struct room room;
    if (!room_open(&room, from, length))
        return -errno;
    memcpy(room.copy, (void *)from, length);
    return room_close(&room, from, PROT_READ | PROT_EXEC);
}

static int enlarge_one(const struct mapping *mapping)
{
    uintptr_t from = large_page_up(mapping->from), to = mapping->to & ~(LARGE_PAGE - 1);
    if (from >= to || mapping->permissions[3] != 'p' || (intptr_t)from < 0)
        return 0;
    if (is_file_text(mapping) && mapping->permissions[2] == 'x')
        return copy_text(from, to - from);
    if (!mapping->inode && !memcmp(mapping->permissions, "rw-", 3))
        madvise((void *)from, to - from, MADV_COLLAPSE); /* a kernel before 6.1 leaves it as it is */
    return 0;
}

static struct {
    uintptr_t from, to;
    size_t pages;
} found;

static int find_run(uintptr_t from, uintptr_t to)
{
    if (!found.pages)
        found.from = from;
    found.to = to;
    found.pages += (to - from) / PAGE;
    return 0;
}

/* Data that does not fill large pages lies in some all the same: a fork and an end deal with neighbours at once.
 * Nothing writes to it meanwhile: other threads stand still, and this one uses its stack and what is too small to count
 * here. */
static int gather_one(const struct mapping *mapping)
{
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
    if (!is_data(mapping) || (mapping->from <= stack && stack < mapping->to))
        return 0;
    found.pages = 0;
    int r = each_run(mapping, find_run);
    if (r < 0 || found.pages < GATHERED_LEAST)
        return r;
    if (mapping->to - found.to < GATHERED_LEAST * PAGE)
        found.to = mapping->to;
    size_t length = found.to - found.from;
    bool fills = !((found.from | found.to) & (LARGE_PAGE - 1));
    if (fills || found.pages * PAGE < length / 4 * 3)
        return 0;
    struct room room;
    if (!room_open(&room, found.from, length))
        return -errno;
    memcpy(room.copy, (void *)found.from, length); /* all of it: what is swapped out does not count as there */
    return room_close(&room, found.from, PROT_READ | PROT_WRITE);
}

int memory_condense(void)
{
    int r = each_mapping(join_data);
    if (r == 0)
        r = each_mapping(join_text);
    if (r == 0)
        r = each_mapping(enlarge_one);
    return r < 0 ? r : each_mapping(gather_one);
}
