/* threat: 1.5-setuid
 * attack: execute setuid and setgid programs of /usr and look at the ids they get; make a setuid and a capable file
 * expect: status=ok
 * control: no_new_privs
 * bare: pwned as nobody
 */
#include "attack.h"

#include <sys/xattr.h>

static int euid_of(pid_t pid)
{
    char path[64], line[256];
    int real, effective = -1;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Uid: %d %d", &real, &effective) == 2)
            break;
    if (status)
        fclose(status);
    return effective;
}

static void try_run(const char *path)
{
    int in[2];
    if (pipe(in))
        return;
    pid_t child = fork();
    if (!child) {
        dup2(in[0], 0);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 20 && child > 0; i++) {
        int id = euid_of(child);
        if (id >= 0 && id != (int)geteuid()) {
            pwned("%s runs as uid %d", path, id);
            break;
        }
        nap_ms(2);
    }
    close(in[0]);
    close(in[1]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const char *const files[] = {"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/newgrp", "/usr/bin/chsh", "/usr/bin/mount"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!access(files[i], X_OK))
            try_run(files[i]);
    close(open("capable", O_CREAT | O_WRONLY, 0755));
    const unsigned char all[20] = {1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff};
    if (!setxattr("capable", "security.capability", all, sizeof all, 0))
        pwned("gave a file capabilities");
    return held();
}
