/* threat: 1.1-overwrite-exe
 * attack: open the interpreter, libc, the init and the supervisor for writing, by path and through /proc/PID/exe
 * expect: status=ok
 * control: readonly mountns
 * bare: pwned as root
 */
#include "attack.h"

static void try_write(const char *path)
{
    const int modes[] = {O_WRONLY, O_RDWR, O_WRONLY | O_APPEND};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        int fd = open(path, modes[i]);
        if (fd >= 0)
            pwned("%s opened for writing", path);
    }
    int held_open = open(path, O_PATH);
    if (held_open >= 0) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", held_open);
        if (open(link, O_WRONLY) >= 0)
            pwned("%s reopened for writing", path);
        close(held_open);
    }
}

int main(void)
{
    if (bare()) { /* a real interpreter held open for writing would keep others from starting it */
        try_write(bait("shared/keep.txt"));
        return held();
    }
    const char *const files[] = {"/usr/bin/bash", "/bin/sh", "/usr/bin/python3", "/usr/bin/env", "/etc/passwd", "/etc/ld.so.cache",
                                 "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        try_write(files[i]);
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        char path[PATH_MAX];
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) || atoi(entry->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
        try_write(path);
    }
    return held();
}
