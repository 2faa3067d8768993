/* Writes the program's own files beneath the work directory, as the cell's user, before any user code ran in it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/steps.h"
#include "cell/sys.h"

#define PATH_SPACE 1088

static int make_parents(int work_fd, const char *path)
{
    char parent[PATH_SPACE];
    size_t length = strlen(path);
    if (length >= sizeof parent) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i < length; i++) {
        if (path[i] != '/')
            continue;
        memcpy(parent, path, i);
        parent[i] = '\0';
        if (mkdirat(work_fd, parent, 0755) < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

int files_make(int dir_fd, const char *path, const char *text)
{
    auto_close int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : fd_write_all(fd, text, strlen(text));
}

/* The filter of a confined slot leaves no openat2; but there the process can reach nothing that user code could not. */
static int create(int work_fd, const char *path, mode_t mode)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = sys_openat2(work_fd, path, (uint64_t)flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    return fd < 0 && errno == ENOSYS ? openat(work_fd, path, flags | O_NOFOLLOW, mode) : fd;
}

int files_write(const struct plan *plan, uint32_t *detail)
{
    auto_close int work_fd = open("/work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (work_fd < 0)
        return -1;
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct plan_file *file = &plan->files[i];
        *detail = (uint32_t)i;
        if (make_parents(work_fd, file->path) < 0)
            return -1;
        auto_close int fd = create(work_fd, file->path, file->mode & 0777);
        if (fd < 0 || fd_write_all(fd, file->content, file->length) < 0)
            return -1;
    }
    return 0;
}
