/* Joining the cell's v1 groups. A single-threaded process that writes "0" to `tasks` moves itself in about 45 us; any
 * other way of attaching waits for an RCU grace period of many milliseconds. On v2 the clone itself places the child.
 */
#include "cell/steps.h"

#include <unistd.h>

int cgroup_join(const int *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (write(files[i], "0", 1) != 1)
            return -1;
    return 0;
}
