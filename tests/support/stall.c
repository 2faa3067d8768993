/* Preloaded into cordon-service by tests: a disk that does not answer. While the byte at the beginning of the file
 * STALL_FLAG is not zero, every call that reads or writes a file of the directory STALL_DIR's device waits. The flag is
 * mapped once, so that looking at it touches no disk. */
#undef _FILE_OFFSET_BITS /* both names of a call are wanted */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static const volatile char *flag;
static dev_t device;

__attribute__((constructor)) static void open_flag(void)
{
    const char *path = getenv("STALL_FLAG"), *dir = getenv("STALL_DIR");
    struct stat st;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || !dir || stat(dir, &st) < 0)
        return;
    device = st.st_dev;
    void *mapped = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    flag = mapped == MAP_FAILED ? NULL : mapped;
    close(fd);
}

static void wait_for_disk(int fd)
{
    struct stat st;
    if (!flag || !*flag || fd <= STDERR_FILENO || fstat(fd, &st) < 0 || st.st_dev != device || !S_ISREG(st.st_mode))
        return;
    while (*flag)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#define STALLED(type, name, params, args)                                                                              \
    type name params;                                                                                                  \
    type name params                                                                                                   \
    {                                                                                                                  \
        static type(*real) params;                                                                                     \
        if (!real)                                                                                                     \
            real = (type(*) params)dlsym(RTLD_NEXT, #name);                                                            \
        wait_for_disk(fd);                                                                                             \
        return real args;                                                                                              \
    }

STALLED(ssize_t, read, (int fd, void *bytes, size_t length), (fd, bytes, length))
STALLED(ssize_t, write, (int fd, const void *bytes, size_t length), (fd, bytes, length))
STALLED(ssize_t, pread, (int fd, void *bytes, size_t length, off_t at), (fd, bytes, length, at))
STALLED(ssize_t, pwrite, (int fd, const void *bytes, size_t length, off_t at), (fd, bytes, length, at))
STALLED(ssize_t, pread64, (int fd, void *bytes, size_t length, off64_t at), (fd, bytes, length, at))
STALLED(ssize_t, pwrite64, (int fd, const void *bytes, size_t length, off64_t at), (fd, bytes, length, at))
STALLED(int, fsync, (int fd), (fd))
STALLED(int, fdatasync, (int fd), (fd))
