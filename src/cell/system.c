/* What a cell sees of the host: its programs and libraries, a little of /etc, a few devices; all of it read-only. For a
 * template, what is small is copied instead of bound: every cell pays for every mount of its template. */
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

#define COPIED_BYTES_MAX (256 << 10)

static const char *const system_entries[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt"};

/* Of the host's /etc only what runtimes need and what tells nothing about the host or its users; a manifest may add. */
static const char *const etc_entries[] = {"alternatives", "ld.so.cache", "protocols", "services", "os-release"};

static const struct {
    const char *name, *text;
} etc_files[] = {
    {"passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
               "cordon:x:1000:1000:cordon:/work:/bin/bash\n"
               "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"group", "root:x:0:\ncordon:x:1000:\nnogroup:x:65534:\n"},
    /* localhost has one address: with two, resolvers answer ::1 first, where a server on 127.0.0.1 does not listen. */
    {"hosts", "127.0.0.1 localhost cordon\n::1 ip6-localhost ip6-loopback\n"},
    {"hostname", "cordon\n"},
    {"resolv.conf", ""},
    {"host.conf", "multi on\n"},
    {"nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nprotocols: files\n"
                      "services: files\n"},
    {"machine-id", "00000000000000000000000000000000\n"},
};

static const char *const device_nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
    const char *target, *path;
} links[] = {
    {"/proc/self/fd", "dev/fd"},       {"/proc/self/fd/0", "dev/stdin"},
    {"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
    {"/proc/self/mounts", "etc/mtab"}, {"/usr/share/zoneinfo/Etc/UTC", "etc/localtime"},
};

/* Shows a directory or file at its place beneath the new root. */
static int bind_entry(int root_fd, const char *host_path, const char *path)
{
    auto_close int tree = mounts_clone(AT_FDCWD, host_path, true);
    if (tree < 0)
        return errno == EACCES ? 0 : -1;
    if (mounts_restrict(tree, MOUNTS_READ_ONLY, true) < 0)
        return -1;
    return mounts_attach(tree, root_fd, path);
}

static int copy_entry(const char *host_path, int copy)
{
    char bytes[16384];
    auto_close int fd = open(host_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    for (;;) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        if (fd_write_all(copy, bytes, (size_t)n) < 0)
            return -1;
    }
}

/* What cannot be copied is bound over what was copied of it. */
static int show_file(int root_fd, const char *host_path, const char *path, bool copies)
{
    auto_close int copy = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (copy < 0)
        return -1;
    if (copies && copy_entry(host_path, copy) == 0)
        return 0;
    return bind_entry(root_fd, host_path, path);
}

static int show_directory(int root_fd, const char *host_path, const char *path)
{
    return mkdirat(root_fd, path, 0755) < 0 ? -1 : bind_entry(root_fd, host_path, path);
}

/* Shows one entry of the host's tree at the same place beneath the new root: links are copied as links. What the
 * host does not have is skipped. */
static int show_entry(int root_fd, const char *host_dir, const char *prefix, const char *name, bool copies)
{
    char host_path[320], path[320], target[256];
    size_t host_length = strlen(host_dir), prefix_length = strlen(prefix), length = strlen(name);
    if (host_length + length >= sizeof host_path || prefix_length + length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(host_path, host_dir, host_length);
    memcpy(host_path + host_length, name, length + 1);
    memcpy(path, prefix, prefix_length);
    memcpy(path + prefix_length, name, length + 1);

    struct stat st;
    if (lstat(host_path, &st) < 0)
        return errno == ENOENT || errno == EACCES ? 0 : -1;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(host_path, target, sizeof target - 1);
        if (n < 0)
            return -1;
        target[n] = '\0';
        return symlinkat(target, root_fd, path) < 0 && errno != EEXIST ? -1 : 0;
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return 0;
    char *slash = strrchr(path + prefix_length, '/');
    if (slash) { /* "ssl/certs": one level is enough for /etc */
        *slash = '\0';
        if (mkdirat(root_fd, path, 0755) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    int shown = S_ISDIR(st.st_mode) ? show_directory(root_fd, host_path, path)
                                    : show_file(root_fd, host_path, path,
                                                copies && (st.st_mode & S_IROTH) && st.st_size <= COPIED_BYTES_MAX);
    return shown < 0 && errno == EEXIST ? 0 : shown; /* a manifest named what is there already */
}

static int make_etc(int root_fd, bool copies)
{
    if (mkdirat(root_fd, "etc", 0755) < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(etc_files); i++) {
        char path[32] = "etc/";
        memcpy(path + 4, etc_files[i].name, strlen(etc_files[i].name) + 1);
        if (files_make(root_fd, path, etc_files[i].text) < 0)
            return -1;
    }
    for (unsigned i = 0; i < ARRAY_LEN(etc_entries); i++)
        if (show_entry(root_fd, "/etc/", "etc/", etc_entries[i], copies) < 0)
            return -1;
    return 0;
}

int system_show_etc(int root_fd, char *const *names, bool copies)
{
    for (; *names; names++)
        if (show_entry(root_fd, "/etc/", "etc/", *names, copies) < 0)
            return -1;
    return 0;
}

/* Nodes of the template's own, where it may make some: they need no mounts. */
static int make_node(int root_fd, const char *host_path, const char *path)
{
    struct stat st;
    if (stat(host_path, &st) < 0)
        return -1;
    if (!S_ISCHR(st.st_mode)) {
        errno = ENODEV;
        return -1;
    }
    return mknodat(root_fd, path, S_IFCHR | 0666, st.st_rdev);
}

static int bind_node(int root_fd, const char *host_path, const char *path)
{
    auto_close int node = mounts_clone(AT_FDCWD, host_path, false);
    if (node < 0 || files_make(root_fd, path, "") < 0 ||
        mounts_restrict(node, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false) < 0)
        return -1;
    return mounts_attach(node, root_fd, path);
}

static int make_devices(int root_fd, bool *own_nodes)
{
    if (mkdirat(root_fd, "dev", 0755) < 0 || mkdirat(root_fd, "dev/shm", 0755) < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(device_nodes); i++) {
        char host_path[24] = "/dev/", path[24] = "dev/";
        memcpy(host_path + 5, device_nodes[i], strlen(device_nodes[i]) + 1);
        memcpy(path + 4, device_nodes[i], strlen(device_nodes[i]) + 1);
        *own_nodes = *own_nodes && make_node(root_fd, host_path, path) == 0;
        if (!*own_nodes && bind_node(root_fd, host_path, path) < 0)
            return -1;
    }
    return 0;
}

static int make_system(int root_fd, bool copies)
{
    for (unsigned i = 0; i < ARRAY_LEN(system_entries); i++)
        if (show_entry(root_fd, "/", "", system_entries[i], copies) < 0)
            return -1;
    if (MUTANT(MOUNTNS)) { /* as if the host's tree were visible */
        static const char *const host_entries[] = {"var", "root", "run", "home", "srv"};
        for (unsigned i = 0; i < ARRAY_LEN(host_entries); i++)
            if (show_entry(root_fd, "/", "", host_entries[i], copies) < 0)
                return -1;
    }
    for (unsigned i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].target, root_fd, links[i].path) < 0 && errno != EEXIST && errno != ENOENT)
            return -1;
    return 0;
}

int system_show(int root_fd, bool copies, bool *own_nodes, enum cell_step *step)
{
    *own_nodes = copies;
    *step = STEP_ETC;
    if (make_etc(root_fd, copies) < 0 || tools_show(root_fd) < 0)
        return -1;
    *step = STEP_DEVICES;
    if (make_devices(root_fd, own_nodes) < 0)
        return -1;
    *step = STEP_SYSTEM_FILES;
    return make_system(root_fd, copies);
}
