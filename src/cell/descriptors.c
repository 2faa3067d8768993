/* Descriptors a child of the warden was born with. It has copies of everything the warden holds: other cells'
 * lifelines, sockets, work directories. Keeping one open even for a moment could keep another cell alive after the
 * warden's death, so the first thing a child does is to close what is not its own. */
#include <unistd.h>

#include "cell/mutant.h"
#include "cell/steps.h"

#define KEEP_MAX 16

static int close_between(unsigned first, unsigned last)
{
    return first > last ? 0 : close_range(first, last, 0);
}

int descriptors_keep(const int *fds, unsigned count)
{
    int kept[KEEP_MAX];
    unsigned used = 0, next = 0;
    for (unsigned i = 0; i < count && used < KEEP_MAX; i++) {
        if (fds[i] < 0)
            continue;
        unsigned at = used++;
        for (; at > 0 && kept[at - 1] > fds[i]; at--)
            kept[at] = kept[at - 1];
        kept[at] = fds[i];
    }
    for (unsigned i = 0; i < used; i++) {
        if (kept[i] > (int)next && close_between(next, (unsigned)kept[i] - 1) < 0)
            return -1;
        next = (unsigned)kept[i] + 1;
    }
    return close_between(next, ~0U);
}
