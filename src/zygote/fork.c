/* What Python and Ruby fork by. The library is loaded before all others (LD_PRELOAD), and the first fork() or getppid()
 * after that word was taken out of the environment serves: it returns in every copy. After fork() an interpreter does
 * what it always does after a fork; getppid() is for one that has nothing to do there. Called before, getppid() parts
 * what follows from what was: what is made from then on lies together. All others are the system's. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cell/cell.h"
#include "zygote/arena.h"
#include "zygote/dense.h"
#include "zygote/keep.h"
#include "zygote/memory.h"
#include "zygote/serve.h"

__attribute__((visibility("default"))) pid_t fork(void);
__attribute__((visibility("default"))) pid_t getppid(void);

static bool served;

static bool is_awaited(void)
{
    return !served && !getenv("LD_PRELOAD");
}

/* Returns in copies. */
static void serve(void)
{
    served = true;
    arena_close();
    bool is_ruby = dlsym(RTLD_DEFAULT, "ruby_init"); /* which has threads, and whose end writes to most of its memory */
    int r = is_ruby ? zygote_serve_whole(CELL_ZYGOTE_FD) : zygote_serve(CELL_ZYGOTE_FD);
    if (r != 0)
        _exit(r == 1 ? 0 : 1);
    if (is_ruby && !zygote_is_awaited)
        memory_own();
}

pid_t fork(void)
{
    if (!is_awaited()) {
        pid_t (*usual)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
        return usual();
    }
    serve();
    return 0;
}

pid_t getppid(void)
{
    if (is_awaited()) {
        serve();
        return -1;
    }
    if (!served)
        dense_begin();
    return (pid_t)syscall(SYS_getppid);
}
