/* Around the fork of the zygote: makes everything of the process ready to be copied, and whole again in the copy. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "zygote/descriptors.h"
#include "zygote/keep.h"
#include "zygote/serve.h"
#include "zygote/threads.h"

/* The first number that is not one of a waiting program's. */
#define FIRST_OWN 5

/* V8 excludes its heap and code from forks. The kernel's own pages refuse the advice, or are out of its reach. */
static int memory_inherit(void)
{
    auto_close int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0)
        return -errno;
    char text[8192];
    size_t held = 0;
    ssize_t n;
    while ((n = read(maps, text + held, sizeof text - 1 - held)) > 0) {
        held += (size_t)n;
        text[held] = '\0';
        char *line = text, *end;
        while ((end = strchr(line, '\n'))) { /* from-to perms ... */
            char *at;
            uintptr_t from = strtoull(line, &at, 16), to = strtoull(at + 1, &at, 16);
            if (at[4] == 'p' && (intptr_t)from >= 0 && madvise((void *)from, to - from, MADV_DOFORK) < 0 &&
                errno != EINVAL)
                return -errno;
            line = end + 1;
        }
        held -= (size_t)(line - text);
        memmove(text, line, held);
        if (held == sizeof text - 1)
            return -E2BIG;
    }
    return n < 0 ? -errno : 0;
}

static int complain(const char *what, int error)
{
    char text[160];
    char *end = stpcpy(stpcpy(stpcpy(stpcpy(text, "zygote: "), what), ": "), strerrordesc_np(-error));
    *end++ = '\n';
    if (write(2, text, (size_t)(end - text)) < 0)
        return error;
    return error;
}

int cordon_zygote_serve_whole(int socket)
{
    int r = threads_park();
    if (r < 0)
        return complain("cannot stop the threads", r);
    if ((r = memory_inherit()) < 0)
        return complain("cannot let memory be copied", r);
    if ((r = descriptors_note(FIRST_OWN)) < 0)
        return complain("an open descriptor cannot be made again", r);
    r = cordon_zygote_serve(socket);
    if (r != 0)
        return r;
    if ((r = descriptors_renew()) < 0)
        return complain("cannot renew descriptors", r);
    if ((r = threads_resume()) < 0)
        return complain("cannot renew threads", r);
    return 0;
}
