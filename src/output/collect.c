/* Owns the walk over a work directory that hostile code has written. Must never follow a link, leave the directory,
 * block on a special file, or do work without bound: every name, depth, size and count may be a trap. Called once per
 * run, after every process of the cell is gone. */
#include "output/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "output/glob.h"
#include "plan/path.h"

#define STEP "collect"
/* Read at a time to compare: on the stack, twice. */
#define COMPARE_BYTES 16384

struct walk {
    int work_fd;
    char *const *globs;
    size_t glob_count;
    const struct collect_known *known;
    size_t known_count;
    struct collected *found;
    uint64_t bytes;
    uint64_t entries;
    uint64_t steps; /* that may still be taken */
    /* The directories from the root down to the current one; one descriptor each. */
    DIR *stack[COLLECT_DEPTH_MAX];
    size_t path_length[COLLECT_DEPTH_MAX]; /* of each, in `path` */
    size_t depth;
    char path[COLLECT_DEPTH_MAX * (PATH_COMPONENT_MAX + 1) + 1];
};

static void walk_end(struct walk *walk)
{
    while (walk->depth)
        closedir(walk->stack[--walk->depth]);
}

void collect_skip(struct collected *collected, const char *path, const struct stat *st, const char *why)
{
    collected->skipped++;
    if (collected->skipped_count == COLLECT_SKIPPED_MAX)
        return;
    if (!collected->skipped_items)
        collected->skipped_items = calloc(COLLECT_SKIPPED_MAX, sizeof *collected->skipped_items);
    char *copy = collected->skipped_items ? strdup(path) : NULL;
    if (!copy)
        return;
    bool has_size = st && S_ISREG(st->st_mode);
    collected->skipped_items[collected->skipped_count++] = (struct collect_skipped){
        .path = copy, .size = has_size ? (uint64_t)st->st_size : 0, .has_size = has_size, .why = why};
}

static const char *why_not_opened(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "Cordon may not read it";
    case ELOOP:
        return "it is a symbolic link";
    case EXDEV:
        return "it belongs to a mount";
    case EMFILE:
    case ENFILE:
        return "Cordon has no descriptor left for it";
    default:
        return "it cannot be opened";
    }
}

static const char *why_not_regular(mode_t mode)
{
    return S_ISLNK(mode)    ? "it is a symbolic link"
           : S_ISFIFO(mode) ? "it is a named pipe"
           : S_ISSOCK(mode) ? "it is a socket"
                            : "it is no regular file";
}

static int compare_known(const void *a, const void *b)
{
    return strcmp(((const struct collect_known *)a)->path, ((const struct collect_known *)b)->path);
}

static const struct collect_known *find_known(const struct walk *walk, const char *path)
{
    struct collect_known key = {.path = path};
    return walk->known_count ? bsearch(&key, walk->known, walk->known_count, sizeof key, compare_known) : NULL;
}

static bool is_unchanged(const struct collect_known *known, int fd, const struct stat *st)
{
    char now[COMPARE_BYTES], before[COMPARE_BYTES];
    if ((uint64_t)st->st_size != known->size)
        return false;
    for (uint64_t at = 0; at < known->size;) {
        size_t most = known->size - at < COMPARE_BYTES ? (size_t)(known->size - at) : COMPARE_BYTES;
        ssize_t n = pread(fd, now, most, (off_t)at);
        if (n <= 0 || (!known->content && pread(known->fd, before, (size_t)n, (off_t)at) != n) ||
            memcmp(now, known->content ? known->content + at : before, (size_t)n) != 0)
            return false;
        at += (uint64_t)n;
    }
    return true;
}

static int add_file(struct walk *walk, const char *path, int fd, const struct stat *st)
{
    struct collected *found = walk->found;
    /* Doubles at powers of two, so no capacity needs keeping. */
    if ((found->count & (found->count - 1)) == 0) {
        size_t capacity = found->count ? found->count * 2 : 1;
        void *items = reallocarray(found->items, capacity, sizeof *found->items);
        if (!items)
            return CORDON_ENOMEM;
        found->items = items;
    }
    char *copy = strdup(path);
    if (!copy)
        return CORDON_ENOMEM;
    found->items[found->count++] =
        (struct collected_file){.path = copy, .size = (uint64_t)st->st_size, .mode = st->st_mode & 07777, .fd = fd};
    walk->bytes += (uint64_t)st->st_size;
    return 0;
}

/* Opens the file if it is a regular one; else -1, and *why says what is there, NULL for nothing that could be taken.
 * The type is looked at through a descriptor that opens nothing, so that a special file is never opened, and again on
 * the opened file. Mounts that were put into the work directory are left alone, as links are: what they hold came from
 * outside and is not the program's to give back. */
static int open_regular(int dir_fd, const char *name, struct stat *st, const char **why)
{
    auto_close int probe = fd_open_beneath(dir_fd, name, O_PATH);
    *st = (struct stat){0};
    *why = probe < 0 && (errno == ENOENT || errno == ENOTDIR) ? NULL : why_not_opened(errno);
    if (probe < 0 || fstat(probe, st) != 0)
        return -1;
    *why = S_ISDIR(st->st_mode) ? NULL : why_not_regular(st->st_mode);
    if (!S_ISREG(st->st_mode))
        return -1;
    auto_close int fd = fd_open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    *why = why_not_opened(errno);
    if (fd < 0 || fstat(fd, st) != 0)
        return -1;
    *why = why_not_regular(st->st_mode);
    return S_ISREG(st->st_mode) ? take_fd(&fd) : -1;
}

/* Takes the file, or counts it as skipped when something is there that is no directory. Negative only when memory is
 * out. */
static int take_file(struct walk *walk, int dir_fd, const char *name, const char *path)
{
    struct stat st;
    const char *why;
    auto_close int fd = open_regular(dir_fd, name, &st, &why);
    if (fd < 0) {
        if (why)
            collect_skip(walk->found, path, &st, why);
        return 0;
    }
    const struct collect_known *known = find_known(walk, path);
    if (known && is_unchanged(known, fd, &st))
        return 0;
    why = walk->found->count == COLLECT_FILES_MAX                  ? "more than 1024 files match"
          : (uint64_t)st.st_size > COLLECT_BYTES_MAX - walk->bytes ? "the files that match have more than 256 MiB"
                                                                   : NULL;
    if (why) {
        collect_skip(walk->found, path, &st, why);
        return 0;
    }
    int failed = add_file(walk, path, fd, &st);
    if (!failed)
        take_fd(&fd);
    return failed;
}

/* A glob that names one file needs no walk, and so no flood of other names can hide that file. */
static int take_literals(struct walk *walk)
{
    int failed = 0;
    for (size_t i = 0; i < walk->glob_count && !failed; i++) {
        const char *path = walk->globs[i];
        bool repeated = false;
        for (size_t j = 0; j < i && !repeated; j++)
            repeated = !strcmp(walk->globs[j], path);
        if (!repeated && !glob_has_magic(path) && request_path_is_safe(path))
            failed = take_file(walk, walk->work_fd, path, path);
    }
    return failed;
}

static struct glob_match match_path(struct walk *walk, const char *path)
{
    struct glob_match all = {false, false};
    bool taken = false;
    for (size_t i = 0; i < walk->glob_count; i++) {
        if (!glob_has_magic(walk->globs[i])) {
            taken = taken || !strcmp(walk->globs[i], path);
            continue;
        }
        struct glob_match one = glob_match_within(walk->globs[i], path, &walk->steps);
        all.path = all.path || one.path;
        all.beneath = all.beneath || one.beneath;
    }
    all.path = all.path && !taken;
    return all;
}

/* Goes one level down. What cannot be entered counts as skipped: it may have held matches. */
static void enter(struct walk *walk, int fd, size_t path_length)
{
    bool is_deep = walk->depth == COLLECT_DEPTH_MAX;
    DIR *dir = fd < 0 || is_deep ? NULL : fdopendir(fd);
    if (!dir) {
        const char *why = is_deep ? "it is more than 32 directories deep" : why_not_opened(errno);
        if (fd >= 0)
            close(fd);
        collect_skip(walk->found, path_length ? walk->path : ".", NULL, why);
        return;
    }
    walk->path_length[walk->depth] = path_length;
    walk->stack[walk->depth++] = dir;
}

static int visit(struct walk *walk, const struct dirent *entry)
{
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
        return 0;
    size_t at = walk->path_length[walk->depth - 1], length = strlen(entry->d_name);
    if (at + 1 + length >= sizeof walk->path) {
        collect_skip(walk->found, entry->d_name, NULL, "its path is too long");
        return 0;
    }
    if (at)
        walk->path[at++] = '/';
    memcpy(walk->path + at, entry->d_name, length + 1);

    struct glob_match match = match_path(walk, walk->path);
    if (!match.path && !match.beneath)
        return 0;
    int dir_fd = dirfd(walk->stack[walk->depth - 1]);
    unsigned char type = entry->d_type;
    struct stat st;
    if (type == DT_UNKNOWN && fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        type = (unsigned char)IFTODT(st.st_mode);
    if (type != DT_DIR)
        return match.path ? take_file(walk, dir_fd, entry->d_name, walk->path) : 0;
    if (match.beneath)
        enter(walk, fd_open_beneath(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY), at + length);
    return 0;
}

/* The directory that is being read. */
static const char *walk_place(struct walk *walk)
{
    size_t length = walk->path_length[walk->depth - 1];
    walk->path[length] = '\0';
    return length ? walk->path : ".";
}

static int walk_all(struct walk *walk)
{
    while (walk->depth) {
        errno = 0;
        const struct dirent *entry = readdir(walk->stack[walk->depth - 1]);
        if (!entry) {
            if (errno)
                collect_skip(walk->found, walk_place(walk), NULL, "it cannot be read to its end");
            closedir(walk->stack[--walk->depth]);
            continue;
        }
        if (++walk->entries > COLLECT_ENTRIES_MAX) {
            collect_skip(walk->found, walk_place(walk), NULL,
                         "there are more than 200,000 names: not all were looked at");
            return 0;
        }
        int failed = visit(walk, entry);
        if (failed)
            return failed;
        if (!walk->steps) {
            collect_skip(walk->found, walk_place(walk), NULL,
                         "its names take too long to compare with the globs: not all were looked at");
            return 0;
        }
    }
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct collected_file *)a)->path, ((const struct collected_file *)b)->path);
}

int collect_files(int work_fd, char *const *globs, size_t glob_count, struct collected *collected, cordon_error *err)
{
    return collect_changed(work_fd, globs, glob_count, NULL, 0, collected, err);
}

int collect_changed(int work_fd, char *const *globs, size_t glob_count, struct collect_known *known, size_t known_count,
                    struct collected *collected, cordon_error *err)
{
    struct collected found = {0};
    auto_free struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return error_nomem(err);
    walk->work_fd = work_fd;
    walk->globs = globs;
    walk->glob_count = glob_count;
    walk->steps = COLLECT_STEPS_MAX;
    walk->found = &found;
    walk->known = known;
    walk->known_count = known_count;
    if (known_count)
        qsort(known, known_count, sizeof *known, compare_known);
    bool magic = false;
    for (size_t i = 0; i < glob_count; i++)
        magic = magic || glob_has_magic(globs[i]);

    /* A descriptor of its own: the caller's may be O_PATH, and its position is not ours to move. */
    int root = fd_open_beneath(work_fd, ".", O_RDONLY | O_DIRECTORY);
    /* The program may have closed its own directory to us; that is its loss and no failure of ours. */
    if (root < 0 && errno != EACCES)
        return error_sys(err, errno, STEP, "cannot open the work directory");
    int failed = take_literals(walk);
    if (magic && !failed)
        enter(walk, take_fd(&root), 0);
    if (root >= 0)
        close(root);
    if (!failed)
        failed = walk_all(walk);
    walk_end(walk);
    if (failed) {
        collected_free(&found);
        return error_nomem(err);
    }
    if (found.count)
        qsort(found.items, found.count, sizeof *found.items, compare_files);
    *collected = found;
    return 0;
}

void collected_free(struct collected *collected)
{
    for (size_t i = 0; i < collected->count; i++) {
        free(collected->items[i].path);
        if (collected->items[i].fd >= 0)
            close(collected->items[i].fd);
    }
    for (size_t i = 0; i < collected->skipped_count; i++)
        free(collected->skipped_items[i].path);
    free(collected->skipped_items);
    free(collected->items);
    free(collected->block);
    *collected = (struct collected){0};
}
