/* threat: 1.1-readonly
 * attack: change a file in a mount that was given read-only, and remount it writable
 * expect: status=ok
 * control: readonly
 * limits: --mount {bait}/shared:/data
 * bare: no the mount exists only in a cell
 */
#include "attack.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

int main(void)
{
    if (access("/data/keep.txt", R_OK)) {
        say("the mount is missing: %s\n", strerror(errno));
        return 1;
    }
    mount(NULL, "/data", NULL, MS_REMOUNT | MS_BIND, NULL);
    chmod("/data/keep.txt", 0666);
    if (open("/data/keep.txt", O_WRONLY) >= 0 || open("/data/new.txt", O_WRONLY | O_CREAT, 0600) >= 0)
        pwned("/data is writable");
    if (!unlink("/data/keep.txt") || !rename("/data/keep.txt", "/data/gone.txt") || !truncate("/data/keep.txt", 0))
        pwned("/data/keep.txt was changed");
    const char *const places[] = {"/data", "/usr", "/etc", "/bin", "/lib"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct statvfs info;
        if (!statvfs(places[i], &info) && !(info.f_flag & ST_RDONLY))
            pwned("%s is mounted writable", places[i]);
    }
    return held();
}
