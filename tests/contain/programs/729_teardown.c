/* threat: 1.7-teardown
 * attack: make the clean-up slow with many files, deep trees and much memory, and end at once
 * expect: status=ok; ends<10s
 * limits: --inodes 30000 --disk 64m --wall 8s
 */
#include "attack.h"

int main(void)
{
    char path[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(path, sizeof path, "t%d", i);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    for (int i = 0; i < 5000; i++)
        if (mkdir("d", 0700) || chdir("d"))
            break;
    for (int i = 0; i < 20; i++)
        if (!fork()) {
            gorge(4 * MIB, MAP_PRIVATE);
            nap_ms(20000);
            _exit(0);
        }
    return held();
}
