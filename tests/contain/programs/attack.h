/* What the hostile programs share. A program confesses with a line "PWNED: ..." when it got through, and says "held"
 * when its attack ran to the end; the judge believes the confession and asks the host about everything else. */
#ifndef ATTACK_H
#define ATTACK_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELPER __attribute__((unused)) static

HELPER __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(1, format, arguments);
    va_end(arguments);
}

#define pwned(...) (say("PWNED: " __VA_ARGS__), say("\n"))

HELPER int held(void)
{
    say("held\n");
    return 0;
}

HELPER const char *given(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* Without a cell the program keeps to the planted bait and leaves the machine's own secrets alone. */
HELPER bool bare(void)
{
    return getenv("BARE");
}

/* A path in the directory of planted bait. */
HELPER const char *bait(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", given("BAIT_DIR"), name);
    return path;
}

/* Prints the start of a file, so that a secret in it shows. */
HELPER bool spill_fd(int fd)
{
    char text[4096];
    ssize_t length = pread(fd, text, sizeof text, 0);
    if (length < 0 && errno == ESPIPE) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        length = read(fd, text, sizeof text);
    }
    for (ssize_t i = 0; i < length; i++)
        if (!text[i])
            text[i] = '\n';
    return length > 0 && write(1, text, (size_t)length) == length;
}

HELPER bool spill(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool got = spill_fd(fd);
    close(fd);
    return got;
}

/* A refusal is EPERM, EACCES or ENOSYS; any other answer means that the kernel's own code was reached. */
HELPER bool reached(const char *what, long answer)
{
    if (answer == -1 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
        return false;
    pwned("%s reached: %ld (%s)", what, answer, answer == -1 ? strerror(errno) : "success");
    return true;
}

HELPER void nap_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

HELPER int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#define MIB (1024UL * 1024UL)

/* Takes memory page by page. */
HELPER void *gorge(size_t bytes, int flags)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    return memory;
}

#endif
