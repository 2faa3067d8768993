/* Owns the way to the user's cache directory. Makes directories that only the user may enter, and refuses one that
 * others may write: what lies there would not be what was put there. */
#include "engine/cache_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

bool cache_place_is_own(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int only_own(int fd)
{
    auto_close int dir = fd;
    struct stat st;
    if (dir < 0 || fstat(dir, &st) < 0 || !cache_place_is_own(&st))
        return -1;
    return take_fd(&dir);
}

int cache_place_open_at(int parent, const char *name)
{
    mkdirat(parent, name, 0700);
    return only_own(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

int cache_place_open_path(const char *path)
{
    mkdir(path, 0700);
    return only_own(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int cache_place_open(const char *name)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    auto_free char *path = NULL;
    bool given = base && *base == '/';
    if (!given && !(home && *home == '/'))
        return -1;
    if (asprintf(&path, "%s%s", given ? base : home, given ? "" : "/.cache") < 0)
        return -1;
    mkdir(path, 0700);
    auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    auto_close int own = cache_place_open_at(dir, "cordon");
    return own < 0 || !name ? take_fd(&own) : cache_place_open_at(own, name);
}
