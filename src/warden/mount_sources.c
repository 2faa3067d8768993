/* Where the request's mounts come from. The library opened each source without following links and sent the descriptor;
 * here it becomes either a detached, idmapped mount (superuser) or a path plus identity that init checks again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cell/steps.h"
#include "warden/warden.h"

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif

int mount_sources_resolve(struct warden *warden, struct cell *cell, const int *fds, size_t fd_count)
{
    if (fd_count != cell->plan.mount_count) {
        errno = EBADMSG;
        return -1;
    }
    for (size_t i = 0; i < fd_count; i++) {
        struct cell_mount *mount = &cell->mounts[i];
        struct stat st;
        if (fstat(fds[i], &st) < 0)
            return -1;
        *mount = (struct cell_mount){.device = st.st_dev, .inode = st.st_ino};
        if (!warden->rootless)
            continue;
        char link[48], path[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fds[i]);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n <= 0)
            return -1;
        path[n] = '\0';
        mount->source = strdup(path);
        if (!mount->source)
            return -1;
    }
    return 0;
}

int mount_sources_idmap(struct warden *warden, struct cell *cell, uint32_t *detail)
{
    if (warden->rootless || !cell->plan.mount_count)
        return 0;
    auto_close int userns = identity_mount_userns(warden, cell);
    if (userns < 0)
        return -1;
    for (size_t i = 0; i < cell->plan.mount_count; i++) {
        *detail = (uint32_t)i;
        auto_close int tree = mounts_clone(cell->mount_fds[i], "", true);
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns};
        if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
            return -1;
        close(cell->mount_fds[i]);
        cell->mount_fds[i] = take_fd(&tree);
    }
    return 0;
}
