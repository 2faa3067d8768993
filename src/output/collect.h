/* Files taken out of a cell's work directory after every process in it is gone. The directory was written by hostile
 * code: names are walked beneath a held descriptor only, links and special files are never opened. */
#ifndef OUTPUT_COLLECT_H
#define OUTPUT_COLLECT_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct collected_file {
    char *path; /* relative to the work directory */
    uint64_t size;
    uint32_t mode;
    int fd;              /* open for reading, regular file; or -1 */
    const char *content; /* then the bytes themselves, in `block` */
};

struct collect_skipped {
    char *path;
    uint64_t size;
    bool has_size;   /* it is a regular file that could be looked at */
    const char *why; /* "it is a symbolic link": static */
};

struct collected {
    struct collected_file *items;
    size_t count;
    uint64_t skipped;                      /* matched, but not a readable regular file, or over a cap */
    struct collect_skipped *skipped_items; /* the first COLLECT_SKIPPED_MAX of them */
    size_t skipped_count;
    char *block; /* NULL: every file has its descriptor */
};

#define COLLECT_FILES_MAX 1024
#define COLLECT_BYTES_MAX (UINT64_C(256) << 20)
/* The most that a result carries in its files, together: all of it is in memory more than once. */
#define COLLECT_RESULT_BYTES_MAX (UINT64_C(8) << 20)
#define COLLECT_DEPTH_MAX        32
/* Directory entries looked at before giving up, so that 10^6 names cost a bounded time. */
#define COLLECT_ENTRIES_MAX 200000
/* Steps of comparing names with globs, about a nanosecond or two each. With a larger bound a program that leaves many
 * long names keeps a thread of its caller for longer; with a smaller one, the last of many names are not looked at. */
#define COLLECT_STEPS_MAX 200000000
/* How many of the files that were left out are named: a program may leave out as many as it likes. */
#define COLLECT_SKIPPED_MAX 100

/* A file that was there before the program began. */
struct collect_known {
    const char *path;
    const char *content; /* NULL: in `fd`, whose position is not moved */
    uint64_t size;
    int fd;
};

/* Globs as in fnmatch(3) on the whole relative path, with "**" for any number of directories. Sorted by path. */
int collect_files(int work_fd, char *const *globs, size_t glob_count, struct collected *collected, cordon_error *err);
/* The same without those of `known` (sorted here) whose bytes are what they were. Times and inodes are the program's to
 * set; bytes that are equal are equal, whatever it did to them. At most the sizes of `known` are read. */
int collect_changed(int work_fd, char *const *globs, size_t glob_count, struct collect_known *known, size_t known_count,
                    struct collected *collected, cordon_error *err);
/* Counts a file that is left out, and names it while there is room; `st` may be NULL. */
void collect_skip(struct collected *collected, const char *path, const struct stat *st, const char *why);
void collected_free(struct collected *collected);

#endif
