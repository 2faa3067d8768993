/* Runs a fuzz target over files and directories of files, so that every input once found stays tested without
 * libFuzzer. Fails when there was nothing to run: an empty corpus proves nothing. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "fuzz.h"

static int replay_file(int dir_fd, const char *name)
{
    auto_close int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    /* Exactly as large as the input, so that a sanitizer sees a read past its end. */
    size_t length = (size_t)st.st_size;
    auto_free uint8_t *bytes = malloc(length ? length : 1);
    if (!bytes || fd_read_all(fd, bytes, length) != (ssize_t)length)
        return 0;
    LLVMFuzzerTestOneInput(bytes, length);
    return 1;
}

static int replay(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return replay_file(AT_FDCWD, path);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += replay_file(dirfd(dir), entry->d_name);
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += replay(argv[i]);
    printf("%d inputs\n", count);
    return count ? 0 : 1;
}
