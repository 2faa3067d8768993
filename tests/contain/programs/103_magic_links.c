/* threat: 1.1-magic-links
 * attack: reach the host's files through root, cwd and fd links in /proc and through /dev/fd
 * expect: status=ok
 * control: mountns pidns
 * bare: secret
 */
#include "attack.h"

static void follow(const char *process, const char *link)
{
    char path[PATH_MAX];
    for (int up = 0; up < 3; up++) {
        snprintf(path, sizeof path, "/proc/%s/%s%s%s/world.txt", process, link, up == 0 ? "" : up == 1 ? "/.." : "/../../../../../../..",
                 given("BAIT_DIR"));
        spill(path);
    }
}

int main(void)
{
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) && strcmp(entry->d_name, "self") != 0)
            continue;
        follow(entry->d_name, "root");
        follow(entry->d_name, "cwd");
        char path[PATH_MAX];
        for (int fd = 0; fd < 32; fd++) {
            snprintf(path, sizeof path, "fd/%d", fd);
            follow(entry->d_name, path);
        }
        snprintf(path, sizeof path, "/proc/%s/task/%s/root%s", entry->d_name, entry->d_name, bait("world.txt"));
        spill(path);
    }
    for (int fd = 0; fd < 32; fd++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "/dev/fd/%d/world.txt", fd);
        spill(path);
        snprintf(path, sizeof path, "/dev/fd/%d/..%s", fd, bait("world.txt"));
        spill(path);
    }
    return held();
}
