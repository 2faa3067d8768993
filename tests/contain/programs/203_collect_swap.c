/* threat: 1.2-swap
 * attack: swap collected files and directories with links to secrets while the run ends
 * expect: status=ok; ends<6s
 * limits: --collect race.txt --collect dir/world.txt --collect *
 * repeat: 5
 * bare: no files are collected only from a cell
 */
#include "attack.h"

int main(void)
{
    int plain = open("race.txt", O_CREAT | O_WRONLY, 0600);
    if (write(plain, "plain\n", 6) != 6)
        return 1;
    symlink(bait("world.txt"), "link");
    mkdir("dir", 0700);
    close(open("dir/world.txt", O_CREAT | O_WRONLY, 0600));
    symlink(given("BAIT_DIR"), "dirlink");
    for (int i = 0; i < 3; i++) {
        if (fork())
            continue;
        setsid();
        close(0);
        close(1);
        close(2);
        for (;;) {
            renameat2(AT_FDCWD, "race.txt", AT_FDCWD, "link", 2);
            renameat2(AT_FDCWD, "dir", AT_FDCWD, "dirlink", 2);
        }
    }
    nap_ms(5);
    return held();
}
