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
        auto_close int fd = sys_openat2(work_fd, file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file->mode & 0777,
                                        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
        if (fd < 0 || fd_write_all(fd, file->content, file->length) < 0)
            return -1;
    }
    return 0;
}
