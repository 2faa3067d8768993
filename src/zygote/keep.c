/* Around the fork of the zygote: makes everything of the process ready to be copied, and whole again in the copy. */
#include <string.h>
#include <unistd.h>

#include "zygote/descriptors.h"
#include "zygote/keep.h"
#include "zygote/memory.h"
#include "zygote/serve.h"
#include "zygote/threads.h"

/* The first number that is not one of a waiting program's. */
#define FIRST_OWN 5

static int complain(const char *what, int error)
{
    char text[160];
    char *end = stpcpy(stpcpy(stpcpy(stpcpy(text, "zygote: "), what), ": "), strerrordesc_np(-error));
    *end++ = '\n';
    if (write(2, text, (size_t)(end - text)) < 0)
        return error;
    return error;
}

int zygote_serve_whole(int socket)
{
    int r = threads_park();
    if (r < 0)
        return complain("cannot stop the threads", r);
    if ((r = memory_inherit()) < 0)
        return complain("cannot let memory be copied", r);
    if ((r = descriptors_note(FIRST_OWN)) < 0)
        return complain("an open descriptor cannot be made again", r);
    r = zygote_serve(socket);
    if (r != 0)
        return r;
    if ((r = descriptors_renew()) < 0)
        return complain("cannot renew descriptors", r);
    if ((r = threads_resume()) < 0)
        return complain("cannot renew threads", r);
    return 0;
}
