/* Scope-bound ownership: a resource is released where its variable ends, unless it was handed over with take_…(). */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define auto_free  __attribute__((cleanup(cleanup_free)))
#define auto_close __attribute__((cleanup(cleanup_close)))

static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define take_ptr(p)                                                                                                    \
    ({                                                                                                                 \
        __typeof__(*(p)) taken_ = *(p);                                                                                \
        *(p) = NULL;                                                                                                   \
        taken_;                                                                                                        \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
