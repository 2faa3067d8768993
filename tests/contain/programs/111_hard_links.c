/* threat: 1.1-hard-links
 * attack: hard-link or rename files that belong to the host into the work directory
 * expect: status=ok
 * control: mountns
 * bare: pwned as root
 */
#include "attack.h"

static void steal(const char *path)
{
    if (!link(path, "stolen") || !linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/stolen", AT_SYMLINK_FOLLOW)) {
        pwned("linked %s", path);
        unlink("stolen");
        unlink("/tmp/stolen");
    }
    int fd = open(path, O_PATH);
    char magic[64];
    snprintf(magic, sizeof magic, "/proc/self/fd/%d", fd);
    if (fd >= 0 && (!linkat(fd, "", AT_FDCWD, "stolen", AT_EMPTY_PATH) || !linkat(AT_FDCWD, magic, AT_FDCWD, "stolen", AT_SYMLINK_FOLLOW))) {
        pwned("linked %s through a descriptor", path);
        unlink("stolen");
    }
}

int main(void)
{
    steal(bait("private.txt"));
    steal(bait("world.txt"));
    if (bare())
        return held();
    steal("/usr/bin/env");
    steal("/etc/passwd");
    return held();
}
