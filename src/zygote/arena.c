/* Owns the area that an interpreter's own large mappings come from until it serves. */
#include "zygote/arena.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "zygote/memory.h"

#define AREA_BYTES    ((size_t)256 << 20)
#define MAPPING_LEAST ((size_t)256 << 10)

static uintptr_t area; /* 0: none, or closed */
static atomic_size_t given;
static bool is_ending;

#define PUBLIC __attribute__((visibility("default")))

static void *system_map(void *hint, size_t length, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, hint, length, protection, flags, fd, offset);
}

static int system_unmap(uintptr_t from, size_t length)
{
    return length ? (int)syscall(SYS_munmap, from, length) : 0;
}

/* Before the C library's heap begins, which then does so at a border too. */
__attribute__((constructor)) static void open_area(void)
{
    if (!getenv("LD_PRELOAD"))
        return; /* loaded late, by an interpreter whose memory has its place */
    uintptr_t heap = (uintptr_t)sbrk(0);
    sbrk((intptr_t)(large_page_up(heap) - heap));
    void *place = system_map(NULL, AREA_BYTES + LARGE_PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return;
    uintptr_t from = (uintptr_t)place;
    area = large_page_up(from);
    system_unmap(from, area - from);
    system_unmap(area + AREA_BYTES, from + LARGE_PAGE - area);
}

void arena_close(void)
{
    if (!area)
        return;
    uintptr_t end = area + AREA_BYTES, used = large_page_up(area + given);
    area = 0;
    if (used < end)
        system_unmap(used, end - used);
}

/* With 64-bit offsets this is mmap64(); the other name is added below. */
PUBLIC void *mmap(void *hint, size_t length, int protection, int flags, int fd, off_t offset)
{
    bool fits = area && !hint && fd == -1 && length >= MAPPING_LEAST && length < AREA_BYTES &&
                flags == (MAP_PRIVATE | MAP_ANONYMOUS) && protection == (PROT_READ | PROT_WRITE);
    if (fits) {
        size_t whole = (length + 4095) & ~(size_t)4095, at = atomic_fetch_add(&given, whole);
        if (at + whole <= AREA_BYTES)
            return (void *)(area + at);
        atomic_fetch_sub(&given, whole);
    }
    return system_map(hint, length, protection, flags, fd, offset);
}

PUBLIC __typeof__(mmap) plain_mmap __asm__("mmap") __attribute__((alias("mmap64"), copy(mmap)));

/* Ruby has a timer while it lives. It stops it to fork, after which it makes another, and at the end, when everything
 * has been finalized: then it returns its memory piece by piece, which the kernel is about to do at once. */
PUBLIC int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
    __typeof__(timer_create) *usual = (__typeof__(timer_create) *)dlsym(RTLD_NEXT, "timer_create");
    is_ending = false;
    return usual(clock, event, timer);
}

PUBLIC int timer_delete(timer_t timer)
{
    __typeof__(timer_delete) *usual = (__typeof__(timer_delete) *)dlsym(RTLD_NEXT, "timer_delete");
    is_ending = dlsym(RTLD_DEFAULT, "ruby_init");
    return usual(timer);
}

/* A hole would keep its neighbours from becoming a large page. */
PUBLIC int munmap(void *address, size_t length)
{
    uintptr_t from = (uintptr_t)address;
    if (is_ending)
        return 0;
    if (area && from >= area && from + length <= area + AREA_BYTES)
        return madvise(address, length, MADV_DONTNEED);
    return system_unmap(from, length);
}
