/* Reads small files whole. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fd.h"

int file_read(const char *path, size_t most, const char *step, char **text, size_t *length, cordon_error *err)
{
    auto_free char *bytes = malloc(most + 1);
    if (!bytes)
        return error_nomem(err);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : fd_read_all(fd, bytes, most + 1);
    if (got < 0)
        return error_sys(err, errno, step, "cannot read %s", path);
    if ((size_t)got > most)
        return error_set(err, CORDON_EINVAL, step, "%s: larger than %zu bytes", path, most);
    bytes[got] = '\0';
    *text = take_ptr(&bytes);
    *length = (size_t)got;
    return 0;
}
