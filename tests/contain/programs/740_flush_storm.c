/* threat: 1.7-flush
 * attack: make the host's disk flush its cache by fsync and its kin on files of /usr, which are only read
 * expect: status=ok; flushes<1500
 * limits: --wall 10s --cpus 2
 * control: seccomp
 */
#include "attack.h"

int main(void)
{
    int fd = open("/usr/bin/bash", O_RDONLY), synchronous = open("/usr/bin/env", O_RDONLY | O_SYNC | O_DSYNC);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), byte;
    int64_t end = now_ms() + 1500;
    for (long round = 0; now_ms() < end; round++) {
        fsync(fd);
        fdatasync(fd);
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        msync(mapped, 4096, MS_SYNC);
        pread(synchronous, &byte, 1, 0);
        if (round % 64 == 0) {
            syncfs(fd);
            sync();
        }
    }
    return held();
}
