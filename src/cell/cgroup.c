/* Joining the cell's v1 groups. A single-threaded process that writes "0" to `tasks` moves itself in about 45 us; any
 * other way of attaching waits for an RCU grace period of many milliseconds. On v2 the clone itself places the child.
 */
#include "cell/steps.h"

#include <unistd.h>

int cgroup_join(const int files[CELL_CGROUP_FILES_MAX])
{
    for (int i = 0; i < CELL_CGROUP_FILES_MAX; i++)
        if (files[i] >= 0 && write(files[i], "0", 1) != 1)
            return -1;
    return 0;
}
