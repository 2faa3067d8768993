/* The process's own memory, mapping by mapping. Each returns 0 or a negative errno. */
#ifndef ZYGOTE_MEMORY_H
#define ZYGOTE_MEMORY_H

#include <stdint.h>

#define LARGE_PAGE ((uintptr_t)2 << 20)

static inline uintptr_t large_page_up(uintptr_t address)
{
    return (address + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
}

/* Lets copies have everything that is private: V8 excludes its heap and code from forks. */
int memory_inherit(void);
/* In a copy: makes what is there of its data its own now, which every first write would otherwise have to wait for. */
int memory_own(void);
/* Fewer mappings and larger pages: every fork and every end of a copy pays for each of them. What cannot be had is left
 * as it was. */
int memory_condense(void);

#endif
