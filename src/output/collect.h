/* Files taken out of a cell's work directory after every process in it is gone. The directory was written by hostile
 * code: names are walked beneath a held descriptor only, links and special files are never opened. */
#ifndef OUTPUT_COLLECT_H
#define OUTPUT_COLLECT_H

#include <cordon/error.h>
#include <stddef.h>
#include <stdint.h>

struct collected_file {
    char *path; /* relative to the work directory */
    uint64_t size;
    uint32_t mode;
    int fd;              /* open for reading, regular file; or -1 */
    const char *content; /* then the bytes themselves, in `block` */
};

struct collected {
    struct collected_file *items;
    size_t count;
    uint64_t skipped; /* matched, but not a readable regular file, or over a cap */
    char *block;      /* NULL: every file has its descriptor */
};

#define COLLECT_FILES_MAX 1024
#define COLLECT_BYTES_MAX (UINT64_C(256) << 20)
/* The most that a result carries in its files, together: all of it is in memory more than once. */
#define COLLECT_RESULT_BYTES_MAX (UINT64_C(8) << 20)
#define COLLECT_DEPTH_MAX        32
/* Directory entries looked at before giving up, so that 10^6 names cost a bounded time. */
#define COLLECT_ENTRIES_MAX 200000

/* Globs as in fnmatch(3) on the whole relative path, with "**" for any number of directories. Sorted by path. */
int collect_files(int work_fd, char *const *globs, size_t glob_count, struct collected *collected, cordon_error *err);
void collected_free(struct collected *collected);

#endif
