/* What the program sees: a tmpfs root with the system's files read-only, a curated /etc, a few devices, its own /proc,
 * and one bounded tmpfs behind /work, /tmp and /dev/shm. Built by the program while it is still the cell's root. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "cell/sys.h"

/* What an unprivileged user could otherwise read or, one day, write; files of the host's root alone are closed anyway.
 * The last is everywhere: to close a cover that was never put on waits for the other processors. */
static const char *const proc_hidden[] = {"kcore",     "keys",    "key-users",     "kallsyms",
                                          "config.gz", "modules", "sysrq-trigger", "cmdline"};
static const char *const proc_read_only[] = {"sys", "pressure"};

/* Objects that are counted for the owner of the user namespace, the host's root among them, whoever makes them. */
static const struct {
    const char *file, *most;
} user_limits[] = {
    {"sys/user/max_inotify_instances", "32"},
    {"sys/user/max_inotify_watches", "16384"},
    {"sys/user/max_user_namespaces", "0"},
    {"sys/user/max_fanotify_groups", "0"},
};

/* Decimal without stdio, for mount options. */
static const char *decimal(int64_t number, char text[24])
{
    char *at = text + 23;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return at;
}

/* Only for a request that asks: what a program writes to a terminal is worked on by the kernel's own threads, which no
 * group is charged for. */
static int make_terminals(int root_fd)
{
    static const char *const options[][2] = {
        {"newinstance", NULL}, {"ptmxmode", "0666"}, {"max", "16"}, {"mode", "0620"}, {NULL, NULL}};
    if (mkdirat(root_fd, "dev/pts", 0755) < 0 || symlinkat("pts/ptmx", root_fd, "dev/ptmx") < 0)
        return -1;
    auto_close int pts = mounts_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return pts < 0 ? -1 : mounts_attach(pts, root_fd, "dev/pts");
}

static const struct {
    const char *name, *path;
    mode_t mode;
} store_parts[] = {{"work", "work", 0755}, {"shm", "dev/shm", 01777}, {"tmp", "tmp", 01777}};

/* Shows the parts of the store at their places; the descriptor of the work directory, or -1. */
static int place_store(int root_fd, int store)
{
    auto_close int work = -1;
    for (unsigned i = 0; i < ARRAY_LEN(store_parts); i++) {
        auto_close int part = mounts_clone(store, store_parts[i].name, false);
        if (part < 0 || mounts_attach(part, root_fd, store_parts[i].path) < 0)
            return -1;
        if (i == 0)
            work = openat(part, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return take_fd(&work);
}

/* The places of the store's parts; in a read-only root they are there already. */
static int make_places(int root_fd)
{
    for (unsigned i = 0; i < ARRAY_LEN(store_parts); i++)
        if (mkdirat(root_fd, store_parts[i].path, 0755) < 0 && errno != EEXIST)
            return -1;
    return 0;
}

/* One tmpfs, so that /work, /tmp and /dev/shm share one quota. It is attached whole at /tmp, where its own part then
 * covers it: kernels before 6.15 clone subtrees only of attached mounts, and to close one that was never attached waits
 * for the other processors. */
static int make_store(int root_fd, const int64_t *limit, uid_t owner)
{
    char size[24], inodes[24];
    const char *const options[][2] = {
        {"size", decimal(MUTANT(DISK) ? INT64_C(1) << 30 : limit[LIMIT_DISK_BYTES], size)},
        {"nr_inodes", decimal(MUTANT(INODES) ? 1 << 20 : limit[LIMIT_INODES] + 4, inodes)},
        {"mode", "0755"},
        {NULL, NULL}};
    auto_close int store = mounts_new("tmpfs", options, MOUNTS_NO_SETUID);
    if (store < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(store_parts); i++)
        if (mkdirat(store, store_parts[i].name, store_parts[i].mode) < 0 ||
            fchownat(store, store_parts[i].name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
    if (make_places(root_fd) < 0 || mounts_attach(store, root_fd, "tmp") < 0)
        return -1;
    return place_store(root_fd, store);
}

/* An ordinary user's mount: the path is opened in this namespace's copy of the mounts and must be the very object that
 * the caller held when the request was checked. */
static int clone_source(const struct cell_mount *mount)
{
    auto_close int fd = sys_openat2(AT_FDCWD, mount->source, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (st.st_dev != mount->device || st.st_ino != mount->inode) {
        errno = ESTALE;
        return -1;
    }
    return mounts_clone(fd, "", true);
}

/* Steps to `name` beneath `dir`, made if it is missing; never through a link, which an earlier run may have left in a
 * writable mount to lead out of the new root. */
static int step_into(int dir, const char *name, bool directory)
{
    uint64_t flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (directory ? O_DIRECTORY : 0);
    uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    int fd = sys_openat2(dir, name, flags, 0, resolve);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (directory ? mkdirat(dir, name, 0755) : files_make(dir, name, ""))
        return -1;
    return sys_openat2(dir, name, flags, 0, resolve);
}

/* The place of a mount: its path walked from the new root, a component at a time. */
static int find_place(int root_fd, const char *destination, bool directory)
{
    auto_close int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 4);
    for (const char *path = destination; at >= 0 && *path;) {
        char name[256];
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (!length)
            break;
        if (length >= sizeof name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        path += length;
        int next = step_into(at, name, *path || directory);
        close(at);
        at = next;
    }
    return take_fd(&at);
}

static int place_mount(int root_fd, const struct plan_mount *mount, int tree)
{
    struct stat st;
    auto_close int place =
        tree < 0 || fstat(tree, &st) < 0 ? -1 : find_place(root_fd, mount->destination, S_ISDIR(st.st_mode));
    if (place < 0 || mounts_restrict(tree, mount->writable ? MOUNTS_NO_SETUID : MOUNTS_READ_ONLY, true) < 0)
        return -1;
    return mounts_attach(tree, place, "");
}

static int hide_in_proc(int root_fd)
{
    if (MUTANT(PROC_MASKS))
        return 0;
    auto_close int proc = openat(root_fd, "proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_close int devices = openat(root_fd, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0 || devices < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(proc_read_only); i++) {
        auto_close int tree = mounts_clone(proc, proc_read_only[i], true);
        if (tree < 0 && errno == ENOENT)
            continue;
        if (tree < 0 ||
            mounts_restrict(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, true) <
                0 ||
            mounts_attach(tree, proc, proc_read_only[i]) < 0)
            return -1;
    }
    auto_close int null = -1;
    for (unsigned i = 0; i < ARRAY_LEN(proc_hidden); i++) {
        if (null < 0 && (null = mounts_clone(devices, "null", false)) < 0)
            return -1;
        if (mounts_attach(null, proc, proc_hidden[i]) == 0) {
            close(null);
            null = -1;
        } else if (errno != ENOENT)
            return -1;
    }
    return 0;
}

static int mount_proc(int root_fd)
{
    auto_close int proc = mounts_new("proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    return proc < 0 ? -1 : mounts_attach(proc, root_fd, "proc");
}

static int bound_user(int root_fd)
{
    auto_close int proc = openat(root_fd, "proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(user_limits); i++) {
        auto_close int fd = openat(proc, user_limits[i].file, O_WRONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue; /* a kernel that does not count these */
        if (fd < 0 || fd_write_all(fd, user_limits[i].most, strlen(user_limits[i].most)) < 0)
            return -1;
    }
    return 0;
}

/* Steps into the new root and drops the old one: with both at the same place there is no directory to clean up. */
static int enter_root(int root_fd)
{
    if (fchdir(root_fd) < 0 || sys_pivot_root(".", ".") < 0)
        return -1;
    return umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 ? -1 : 0;
}

/* What no request and no cell makes different, but for /proc, whose place is there. `copies`: for a template.
 * `*own_nodes`: the devices are the root's own, so it has to allow them. */
static int make_common(bool copies, bool *own_nodes, enum cell_step *step)
{
    static const char *const options[][2] = {{"size", "4m"}, {"nr_inodes", "1024"}, {"mode", "0755"}, {NULL, NULL}};
    umask(0);
    *step = STEP_PROPAGATION;
    if (mounts_make_private() < 0)
        return -1;
    *step = STEP_ROOT;
    auto_close int root_fd = mounts_new("tmpfs", options, copies ? MOUNT_ATTR_NOSUID : MOUNTS_NO_SETUID);
    /* Over /proc, which every host has and which the sources below do not need. */
    if (root_fd < 0 || mounts_attach(root_fd, AT_FDCWD, "/proc") < 0)
        return -1;
    if (system_show(root_fd, copies, own_nodes, step) < 0)
        return -1;
    *step = STEP_PROC;
    if (mkdirat(root_fd, "proc", 0555) < 0 || mount_proc(root_fd) < 0)
        return -1;
    return take_fd(&root_fd);
}

int root_begin(enum cell_step *step)
{
    bool own_nodes;
    auto_close int root_fd = make_common(false, &own_nodes, step);
    if (root_fd < 0)
        return -1;
    if (bound_user(root_fd) < 0)
        return -1;
    *step = STEP_PROC_MASKS;
    if (hide_in_proc(root_fd) < 0)
        return -1;
    return take_fd(&root_fd);
}

int root_finish(int root_fd, const struct plan *plan, const struct cell_mount *sources, const int *mount_fds,
                size_t mount_fd_count, enum cell_step *step, uint32_t *detail)
{
    *step = STEP_ETC;
    if (system_show_etc(root_fd, plan->etc, false) < 0)
        return -1;
    *step = STEP_DEVICES;
    if (plan->terminals && make_terminals(root_fd) < 0)
        return -1;
    *step = STEP_STORE;
    auto_close int work = make_store(root_fd, plan->limit, CELL_UID);
    if (work < 0)
        return -1;
    *step = STEP_REQUEST_MOUNT;
    for (size_t i = 0; i < plan->mount_count; i++) {
        *detail = (uint32_t)i;
        auto_close int own = sources[i].source ? clone_source(&sources[i]) : -1;
        int tree = sources[i].source ? own : i < mount_fd_count ? mount_fds[i] : -1;
        if (place_mount(root_fd, &plan->mounts[i], tree) < 0)
            return -1;
    }
    *step = STEP_ROOT;
    if (mounts_restrict(root_fd, MOUNTS_READ_ONLY, false) < 0)
        return -1;
    *step = STEP_PIVOT;
    if (enter_root(root_fd) < 0)
        return -1;
    return take_fd(&work);
}

/* The template's own /proc is that of an empty pid namespace; a copy of the template covers it with the cell's. It is
 * not masked, because the kernel lets a user namespace mount a /proc only where it can see a whole one. */
int root_template(char *const *etc, enum cell_step *step)
{
    bool own_nodes;
    auto_close int root_fd = make_common(true, &own_nodes, step);
    if (root_fd < 0)
        return -1;
    *step = STEP_ETC;
    if (system_show_etc(root_fd, etc, true) < 0)
        return -1;
    *step = STEP_ROOT;
    uint64_t read_only = own_nodes ? MOUNTS_READ_ONLY & ~(uint64_t)MOUNT_ATTR_NODEV : MOUNTS_READ_ONLY;
    if (make_places(root_fd) < 0 || mounts_restrict(root_fd, read_only, false) < 0)
        return -1;
    *step = STEP_PIVOT;
    return enter_root(root_fd);
}

int root_on_template(const int64_t *limit, bool new_user, enum cell_step *step)
{
    *step = STEP_ROOT;
    auto_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -1;
    umask(0);
    *step = STEP_PROC;
    if (mount_proc(root_fd) < 0 || (new_user && bound_user(root_fd) < 0))
        return -1;
    *step = STEP_PROC_MASKS;
    if (hide_in_proc(root_fd) < 0)
        return -1;
    *step = STEP_STORE;
    return make_store(root_fd, limit, CELL_UID);
}

int root_for_zygote(const int64_t *limit, enum cell_step *step)
{
    static const char *const options[][2] = {{"hidepid", "invisible"}, {"subset", "pid"}, {NULL, NULL}};
    *step = STEP_ROOT;
    auto_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -1;
    umask(0);
    /* Only the superuser may mount one of the host's pid namespace; without it an interpreter that needs one fails. */
    auto_close int proc = mounts_new("proc", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (proc >= 0 && mounts_attach(proc, root_fd, "proc") < 0)
        return -1;
    *step = STEP_STORE;
    auto_close int work = make_store(root_fd, limit, (uid_t)-1);
    return work < 0 ? -1 : 0;
}

int root_place_mounts(const struct plan *plan, const int *mount_fds, uint32_t *detail)
{
    auto_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -1;
    for (size_t i = 0; i < plan->mount_count; i++) {
        *detail = (uint32_t)i;
        if (place_mount(root_fd, &plan->mounts[i], mount_fds[i]) < 0)
            return -1;
    }
    return 0;
}
