/* Owns the reserve. Called by the writer. */
#include "store/reserve.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NAME "cordon.reserve"
/* Erasing overwrites, so the log needs as much room as what is erased, and before that what is in the log has to go
 * into the database. This is enough for both, and for the largest output that the daemon allows by default. */
#define BYTES ((uint64_t)32 << 20)
/* Of the file system at most. */
#define PART 8

void reserve_make(int directory)
{
    struct statvfs space;
    if (fstatvfs(directory, &space) < 0)
        return;
    uint64_t part = (uint64_t)space.f_blocks * space.f_frsize / PART, wanted = part < BYTES ? part : BYTES;
    auto_close int fd = openat(directory, NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* Not the last of it: the store is still to be written. */
    if (fd < 0 || (uint64_t)space.f_bavail * space.f_frsize < 2 * wanted)
        return;
    if (posix_fallocate(fd, 0, (off_t)wanted) != 0)
        (void)!ftruncate(fd, 0);
}

void reserve_release(int directory)
{
    auto_close int fd = openat(directory, NAME, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)!ftruncate(fd, 0);
}
