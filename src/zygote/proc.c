#include "zygote/proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int proc_each(const char *path, int (*each)(void *context, int number), void *context)
{
    auto_close int list = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (list < 0)
        return -errno;
    char buffer[4096] __attribute__((aligned(8)));
    long n;
    while ((n = syscall(SYS_getdents64, list, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < n;) {
            const char *entry = buffer + at; /* ino 8, offset 8, length 2, type 1, name */
            uint16_t length;
            memcpy(&length, entry + 16, sizeof length);
            at += length;
            const char *name = entry + 19;
            int number = isdigit((unsigned char)*name) ? (int)strtol(name, NULL, 10) : -1;
            int result = number < 0 || number == list ? 0 : each(context, number);
            if (result)
                return result;
        }
    }
    return n < 0 ? -errno : 0;
}
