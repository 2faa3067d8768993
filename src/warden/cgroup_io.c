/* The bound on what a cell reads from and writes to the disk that holds /usr: a throttle in the kernel, of the `io`
 * controller (v2) or `blkio` (v1). Dropping pages from the cache and reading them again is thereby no way to take the
 * disk from everybody else. Where there is no such controller, or /usr lies on no block device, cells run without. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "warden/cgroup.h"

/* Btrfs and others show a device number that no disk has; the mount's source names the disk. */
static bool find_mounted(const char *mounts, dev_t wanted, dev_t *device)
{
    for (const char *line = mounts; line; line = cgroup_next_line(line)) {
        char source[256], where[256];
        struct stat place, disk;
        if (sscanf(line, "%255s %255s", source, where) == 2 && *source == '/' && stat(where, &place) == 0 &&
            place.st_dev == wanted && stat(source, &disk) == 0 && S_ISBLK(disk.st_mode)) {
            *device = disk.st_rdev;
            return true;
        }
    }
    return false;
}

/* The disk's number for a partition's: only whole disks can be throttled. False when it is no block device. */
static bool whole_disk(dev_t device, char *text, size_t size)
{
    char disk[48], path[64], number[24];
    snprintf(disk, sizeof disk, "/sys/dev/block/%u:%u", major(device), minor(device));
    if (access(disk, F_OK) < 0)
        return false;
    snprintf(path, sizeof path, "%s/partition", disk);
    if (access(path, F_OK) < 0)
        return (size_t)snprintf(text, size, "%u:%u", major(device), minor(device)) < size;
    snprintf(path, sizeof path, "%s/../dev", disk);
    if (fd_read_text_at(AT_FDCWD, path, number, sizeof number) <= 0)
        return false;
    return (size_t)snprintf(text, size, "%.*s", (int)strcspn(number, "\n"), number) < size;
}

void cgroup_io_find(struct cgroup_root *root, const char *mounts)
{
    struct stat st;
    dev_t device;
    if (stat("/usr", &st) < 0)
        return;
    if (!whole_disk(st.st_dev, root->io_device, sizeof root->io_device) &&
        !(find_mounted(mounts, st.st_dev, &device) && whole_disk(device, root->io_device, sizeof root->io_device)))
        *root->io_device = '\0';
}

int cgroup_io_bound_v2(int dir, const char *device)
{
    char text[96];
    snprintf(text, sizeof text, "%s rbps=%d wbps=%d", device, IO_BYTES_PER_SECOND, IO_BYTES_PER_SECOND);
    return fd_write_text_at(dir, "io.max", text);
}

static int bound_v1(int dir, const char *device)
{
    char text[64];
    snprintf(text, sizeof text, "%s %d", device, IO_BYTES_PER_SECOND);
    if (fd_write_text_at(dir, "blkio.throttle.read_bps_device", text) < 0)
        return -1;
    return fd_write_text_at(dir, "blkio.throttle.write_bps_device", text);
}

static void name_group(const struct cgroup_root *root, const struct io_group *group, char *name, size_t size)
{
    snprintf(name, size, "%sio-%d", root->prefix, (int)(group - root->io));
}

static int make_group(const struct cgroup_root *root, const struct io_group *group)
{
    char name[96];
    name_group(root, group, name, sizeof name);
    if (mkdirat(root->io_dir, name, 0755) < 0)
        return -1;
    auto_close int dir = openat(root->io_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int tasks = -1;
    if (dir >= 0 && bound_v1(dir, root->io_device) == 0)
        tasks = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
    if (tasks < 0)
        unlinkat(root->io_dir, name, AT_REMOVEDIR);
    return tasks;
}

/* Nothing is charged to a v1 group of this kind for good, so it serves one cell after the other, and saves each a
 * directory. More cells than groups share them, and the bound. */
void cgroup_io_take(struct cgroup_root *root, struct cgroup *cgroup)
{
    struct io_group *group = root->io;
    if (root->io_dir < 0 || !*root->io_device)
        return;
    for (struct io_group *other = root->io; other < root->io + IO_GROUPS; other++)
        if (other->users < group->users)
            group = other;
    if (!group->made) {
        group->tasks = make_group(root, group);
        group->made = true;
    }
    if (group->tasks < 0)
        return;
    group->users++;
    cgroup->io = group;
    cgroup->join_files[CG_CONTROLLERS] = group->tasks;
}

void cgroup_io_leave(struct cgroup *cgroup)
{
    if (cgroup->io)
        cgroup->io->users--;
    cgroup->io = NULL;
    cgroup->join_files[CG_CONTROLLERS] = -1; /* the group's own */
}

void cgroup_io_remove(struct cgroup_root *root)
{
    char name[96];
    for (struct io_group *group = root->io; group < root->io + IO_GROUPS; group++)
        if (group->made && group->tasks >= 0) {
            name_group(root, group, name, sizeof name);
            cleanup_close(&group->tasks);
            unlinkat(root->io_dir, name, AT_REMOVEDIR);
            *group = (struct io_group){.tasks = -1};
        }
}
