/* The new mount API in the few forms a cell needs: make a file system, clone a tree, restrict it, attach it. Everything
 * goes by descriptor; no path is looked up twice. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cell/steps.h"

int mounts_make_private(void)
{
    struct mount_attr attr = {.propagation = MS_PRIVATE};
    return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr);
}

/* `options` ends with a NULL key; a NULL value is a flag. */
int mounts_new(const char *type, const char *const options[][2], uint64_t attributes)
{
    auto_close int context = fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0)
        return -1;
    for (unsigned i = 0; options && options[i][0]; i++) {
        unsigned command = options[i][1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (fsconfig(context, command, options[i][0], options[i][1], 0) < 0)
            return -1;
    }
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes);
}

int mounts_clone(int dir_fd, const char *path, bool recursive)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (recursive)
        flags |= AT_RECURSIVE;
    if (!*path)
        flags |= AT_EMPTY_PATH;
    return open_tree(dir_fd, path, flags);
}

int mounts_restrict(int mount_fd, uint64_t attributes, bool recursive)
{
    struct mount_attr attr = {.attr_set = attributes};
    return mount_setattr(mount_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr, sizeof attr);
}

int mounts_attach(int mount_fd, int dir_fd, const char *path)
{
    return move_mount(mount_fd, "", dir_fd, path, MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
}
