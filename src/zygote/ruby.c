/* What Ruby forks by. The library is loaded before all others, and the first fork() of the process serves: it returns
 * in every copy, where Ruby then does what it always does after a fork. Later ones are the system's. */
#include <dlfcn.h>
#include <stdbool.h>
#include <unistd.h>

#include "cell/cell.h"
#include "zygote/keep.h"
#include "zygote/memory.h"
#include "zygote/serve.h"

__attribute__((visibility("default"))) pid_t fork(void);

pid_t fork(void)
{
    static bool served;
    if (served) {
        pid_t (*usual)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
        return usual();
    }
    served = true;
    int r = cordon_zygote_serve_whole(CELL_ZYGOTE_FD);
    if (r != 0)
        _exit(r == 1 ? 0 : 1);
    if (!zygote_is_awaited)
        memory_own(); /* its end writes to most of it */
    return 0;
}
