/* threat: 1.6-cgroup-path
 * attack: learn the place of the cell in the host's control groups
 * expect: status=ok
 * control: cgroupns
 * bare: no a plain process has no cell
 */
#include "attack.h"

int main(void)
{
    const char *const files[] = {"/proc/self/cgroup", "/proc/1/cgroup", "/proc/self/mountinfo"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "r");
        char line[1024];
        while (file && fgets(line, sizeof line, file))
            if (strstr(line, "cordon-"))
                pwned("%s shows %s", files[i], line);
        if (file)
            fclose(file);
    }
    return held();
}
