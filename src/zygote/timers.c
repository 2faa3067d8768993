/* Timers made by timer_create() belong to a process and are not copied. Ruby makes one when it starts, to wake threads
 * that wait, and takes a failure to set it for a bug of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "zygote/timers.h"

#define TIMERS_MAX 8

static struct note {
    int id, clock;
    struct sigevent event;
} notes[TIMERS_MAX];
static unsigned notes_count;

/* A number behind a name, within the lines of one timer. */
static const char *behind(const char *text, const char *end, const char *name)
{
    const char *at = strstr(text, name);
    return at && at < end ? at + strlen(name) : NULL;
}

/* The kernel lists for each timer:
 *     ID: 0
 *     signal: 26/00007f103e9ae200      (number / value)
 *     notify: signal/pid.5456
 *     ClockID: 1
 */
int timers_note(void)
{
    auto_close int list = open("/proc/self/timers", O_RDONLY | O_CLOEXEC);
    if (list < 0)
        return errno == ENOENT ? 0 : -errno;
    char text[2048];
    ssize_t n = read(list, text, sizeof text - 1);
    if (n < 0)
        return -errno;
    if (n == sizeof text - 1)
        return -E2BIG;
    text[n] = '\0';
    for (const char *at = strstr(text, "ID: "); at;) {
        const char *clock = strstr(at, "ClockID: ");
        if (!clock)
            return -EINVAL;
        const char *event = behind(at, clock, "signal: "), *notify = behind(at, clock, "notify: ");
        if (!event || !notify || strncmp(notify, "signal/pid", 10) != 0 || notes_count == TIMERS_MAX)
            return -EINVAL;
        struct note *note = &notes[notes_count++];
        char *value;
        note->id = (int)strtol(at + 4, NULL, 10);
        note->clock = (int)strtol(clock + 9, NULL, 10);
        note->event.sigev_notify = SIGEV_SIGNAL;
        note->event.sigev_signo = (int)strtol(event, &value, 10);
        note->event.sigev_value.sival_ptr = (void *)(uintptr_t)strtoull(value + 1, NULL, 16);
        at = strstr(clock + 9, "\nID: ");
        at = at ? at + 1 : NULL;
    }
    return 0;
}

int timers_renew(void)
{
    for (unsigned i = 0; i < notes_count; i++) {
        int id;
        if (syscall(SYS_timer_create, notes[i].clock, &notes[i].event, &id) < 0)
            return -errno;
        if (id != notes[i].id)
            return -EEXIST;
    }
    return 0;
}
