/* threat: 1.7-merging
 * attack: have kernel threads merge equal pages, by madvise and by prctl for the whole process
 * expect: status=ok
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif

int main(void)
{
    char *memory = gorge(4 * MIB, MAP_PRIVATE);
    if (memory && !madvise(memory, 4 * MIB, MADV_MERGEABLE))
        pwned("madvise(MADV_MERGEABLE) is taken");
    if (prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) == 1)
        pwned("the whole process is merged already");
    if (!prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0))
        pwned("prctl(PR_SET_MEMORY_MERGE) is taken");
    return held();
}
