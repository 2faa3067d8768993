/* Owns the memory that Python's small objects come from once a zygote has loaded what it is for, and its lists of free
 * blocks. Where it is used up, and for what is larger, Python's own allocator goes on; a block goes back to whom it
 * came from. Called with Python's one lock held. */
#include "zygote/dense.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define AREA_BYTES  ((size_t)1 << 20)
#define STRETCH     ((size_t)256 << 10) /* from one beginning to the next */
#define GRAIN       ((size_t)16)
#define SMALL_BYTES ((size_t)2048) /* code and tables of names too */
#define SIZES       (SMALL_BYTES / GRAIN + 1)

/* As in Python's pymem.h. */
struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};
enum domain { DOMAIN_MEM = 1, DOMAIN_OBJ, DOMAINS };

struct free_block {
    struct free_block *next;
};

static struct allocator usual[DOMAINS];
static uintptr_t area, next, end;
static struct free_block *free_blocks[SIZES];
static unsigned char grains[AREA_BYTES / GRAIN]; /* of the block that begins there */

static bool is_ours(const void *block)
{
    return (uintptr_t)block - area < AREA_BYTES;
}

static unsigned char *size_of(const void *block)
{
    return &grains[((uintptr_t)block - area) / GRAIN];
}

static void *take(size_t size)
{
    size_t count = size ? (size + GRAIN - 1) / GRAIN : 1;
    struct free_block *block = free_blocks[count];
    if (block) {
        free_blocks[count] = block->next;
        return block;
    }
    if (end - next < count * GRAIN)
        return NULL;
    block = (struct free_block *)next; /* NOLINT(performance-no-int-to-ptr) */
    next += count * GRAIN;
    *size_of(block) = (unsigned char)count;
    return block;
}

static void give_back(void *memory)
{
    struct free_block *block = memory;
    size_t count = *size_of(block);
    block->next = free_blocks[count];
    free_blocks[count] = block;
}

static void *dense_malloc(void *context, size_t size)
{
    const struct allocator *other = context;
    void *block = size <= SMALL_BYTES ? take(size) : NULL;
    return block ? block : other->malloc(other->context, size);
}

static void *dense_calloc(void *context, size_t count, size_t size)
{
    const struct allocator *other = context;
    size_t whole;
    void *block = !__builtin_mul_overflow(count, size, &whole) && whole <= SMALL_BYTES ? take(whole) : NULL;
    return block ? memset(block, 0, whole) : other->calloc(other->context, count, size);
}

static void *dense_realloc(void *context, void *block, size_t size)
{
    const struct allocator *other = context;
    if (!block)
        return dense_malloc(context, size);
    if (!is_ours(block))
        return other->realloc(other->context, block, size);
    size_t held = *size_of(block) * GRAIN;
    if (size <= held && size > held / 2)
        return block;
    void *moved = dense_malloc(context, size);
    if (moved) {
        memcpy(moved, block, size < held ? size : held);
        give_back(block);
    }
    return moved;
}

static void dense_free(void *context, void *block)
{
    const struct allocator *other = context;
    if (is_ours(block))
        give_back(block);
    else
        other->free(other->context, block);
}

/* From 3.12 on a program may have interpreters with a lock each. */
static bool has_one_lock(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *text = version ? version() : "";
    return !strncmp(text, "3.9.", 4) || !strncmp(text, "3.10.", 5) || !strncmp(text, "3.11.", 5);
}

static bool install(void)
{
    typedef void access(enum domain, struct allocator *);
    access *get = (access *)dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    access *set = (access *)dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    if (!get || !set || !has_one_lock())
        return false;
    void *place = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return false;
    madvise(place, AREA_BYTES, MADV_NOHUGEPAGE);
    area = next = end = (uintptr_t)place;
    for (enum domain domain = DOMAIN_MEM; domain < DOMAINS; domain++) {
        get(domain, &usual[domain]);
        struct allocator dense = {&usual[domain], dense_malloc, dense_calloc, dense_realloc, dense_free};
        set(domain, &dense);
    }
    return true;
}

void dense_begin(void)
{
    if (!area && !install())
        return;
    memset(free_blocks, 0, sizeof free_blocks);
    uintptr_t stop = area + AREA_BYTES;
    next = end;
    end = stop - end < STRETCH ? stop : end + STRETCH;
}
