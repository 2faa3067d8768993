/* threat: 1.7-page-tables
 * attack: make the kernel hold page tables instead of pages
 * expect: status=memory_limit; silent; mem<400m
 * limits: --memory 64m --wall 10s
 * needs: cgroup
 * control: memory
 */
#include "attack.h"

int main(void)
{
    const size_t span = 64UL << 30;
    size_t touched = 0;
    for (int i = 0; i < 6; i++) {
        volatile char *map = mmap(NULL, span, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
            return 1;
        madvise((void *)map, span, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < span; at += 2 * MIB) {
            (void)map[at];
            touched++;
        }
    }
    pwned("held %zu MiB of page tables", touched * 4096 / MIB);
    return 0;
}
