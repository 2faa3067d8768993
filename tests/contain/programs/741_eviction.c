/* threat: 1.7-eviction
 * attack: read files of /usr again and again past the page cache: dropped from it, pushed out of it, and with O_DIRECT
 * expect: status=ok|wall_limit; silent; disk<1500m
 * limits: --wall 3s --cpus 2 --memory 128m --disk 32m
 * needs: cgroup
 * control: io
 */
#include "attack.h"

#include <ftw.h>

enum { READERS = 16, CHUNK = 1 << 20 };

static char *files[4096];
static int count;

static int note(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)walk;
    if (type == FTW_F && st->st_size > CHUNK && count < 4096)
        files[count++] = strdup(path);
    return 0;
}

static void read_all(int first, int64_t end)
{
    char *buffer = aligned_alloc(4096, CHUNK);
    for (int i = first; count && now_ms() < end; i = (i + READERS) % count) {
        int fd = open(files[i], O_RDONLY | O_DIRECT);
        if (fd < 0)
            fd = open(files[i], O_RDONLY);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        for (off_t at = 0; pread(fd, buffer, CHUNK, at) > 0 && now_ms() < end; at += CHUNK)
            ;
        close(fd);
    }
}

int main(void)
{
    int64_t end = now_ms() + 2500;
    nftw("/usr/lib", note, 16, FTW_PHYS);
    for (int i = 0; i < READERS; i++)
        if (fork() == 0) {
            read_all(i, end);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    return held();
}
