/* threat: 1.3-proc-net
 * attack: learn the host's interfaces, routes, sockets and neighbours from /proc/net and /sys/class/net
 * expect: status=ok
 * control: netns
 * bare: pwned
 */
#include "attack.h"

static void search(const char *path, const char *needle, const char *what)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, needle))
            pwned("%s shows %s", path, what);
    if (file)
        fclose(file);
}

int main(void)
{
    char port[16];
    snprintf(port, sizeof port, ":%04X ", (unsigned)atoi(given("BAIT_TCP4")));
    const char *const views[] = {"/proc/net", "/proc/self/net", "/proc/1/net", "/proc/self/task/self/net"};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/tcp", views[i]);
        search(path, port, "the host's listener");
        snprintf(path, sizeof path, "%s/unix", views[i]);
        search(path, given("BAIT_UNIX"), "the host's abstract socket");
        snprintf(path, sizeof path, "%s/dev", views[i]);
        search(path, "eth", "a network card");
    }
    DIR *links = opendir("/sys/class/net");
    for (struct dirent *entry; links && (entry = readdir(links));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lo") != 0)
            pwned("/sys/class/net shows %s", entry->d_name);
    return held();
}
