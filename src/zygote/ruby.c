/* What Ruby calls the zygote library by: an extension with one function. Ruby's functions are declared here and looked
 * up when it is loaded, so that the library needs no Ruby to be built. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "zygote/keep.h"

typedef uintptr_t ruby_value;

static void (*thread_atfork)(void);

/* cordon_zygote_fork: returns in every copy, never in the zygote itself. Ruby keeps the process id beside its timer and
 * its wake-up descriptors, and cannot be told another; in a cell's pid namespace a copy has the same id as the zygote
 * in its own. */
static ruby_value fork_whole(ruby_value self)
{
    pid_t pid = getpid();
    int r = cordon_zygote_serve_whole(3);
    if (r != 0)
        _exit(r == 1 ? 0 : 1);
    if (getpid() != pid) {
        static const char text[] = "zygote: the copy has another process id\n";
        _exit(write(2, text, sizeof text - 1) < 0 ? 2 : 1);
    }
    thread_atfork(); /* resets the random generator, too */
    return self;
}

__attribute__((visibility("default"))) void Init_cordon_zygote(void);

void Init_cordon_zygote(void)
{
    void (*define)(const char *, ruby_value (*)(ruby_value), int);
    *(void **)&define = dlsym(RTLD_DEFAULT, "rb_define_global_function");
    *(void **)&thread_atfork = dlsym(RTLD_DEFAULT, "rb_thread_atfork");
    if (define && thread_atfork)
        define("cordon_zygote_fork", fork_whole, 0);
}
