/* The descriptors an interpreter opened for itself while it started: libuv's event queues, wake-up counters and signal
 * pipes, /dev/null. Copies of a process share them with it and with each other, which would let one cell wake or starve
 * another, so a copy gets new ones under the same numbers, with what was pending and watched in the old. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "zygote/descriptors.h"
#include "zygote/proc.h"

enum kind { KIND_PIPE, KIND_EVENT_COUNTER, KIND_EVENT_QUEUE, KIND_NULL };

#define NOTES_MAX   64
#define WATCHES_MAX 128
#define PENDING_MAX 64

struct note {
    int fd;
    enum kind kind;
    int status, close_on_exec;
    ino_t pipe;
    char pending[PENDING_MAX];
    size_t pending_length;
    unsigned count;
};

static struct note notes[NOTES_MAX];
static unsigned notes_count;
static struct {
    int queue, fd;
    struct epoll_event event;
} watches[WATCHES_MAX];
static unsigned watches_count;

/* /proc/self/DIRECTORY/FD, without stdio. */
static void proc_path(char path[64], const char *directory, int fd)
{
    char digits[12];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    char *end = stpcpy(stpcpy(path, "/proc/self/"), directory);
    while (n)
        *end++ = digits[--n];
    *end = '\0';
}

static int read_info(int fd, char *text, size_t size)
{
    char path[64];
    proc_path(path, "fdinfo/", fd);
    auto_close int info = open(path, O_RDONLY | O_CLOEXEC);
    if (info < 0)
        return -errno;
    ssize_t n = read(info, text, size - 1);
    if (n < 0)
        return -errno;
    if ((size_t)n == size - 1)
        return -E2BIG;
    text[n] = '\0';
    return 0;
}

static uint64_t field(const char *text, const char *name, int base)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

/* What waits in a pipe is looked at without taking it out, by way of a second pipe. */
static int note_pipe(struct note *note)
{
    struct stat st;
    int waiting;
    if (fstat(note->fd, &st) < 0 || ioctl(note->fd, FIONREAD, &waiting) < 0)
        return -errno;
    note->pipe = st.st_ino;
    if ((note->status & O_ACCMODE) != O_RDONLY || waiting == 0)
        return 0;
    int copy[2];
    if (waiting > PENDING_MAX)
        return -EBADF;
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    auto_close int copy_out = copy[0], copy_in = copy[1];
    if (tee(note->fd, copy_in, PENDING_MAX, SPLICE_F_NONBLOCK) != waiting)
        return -EIO;
    ssize_t n = read(copy_out, note->pending, PENDING_MAX);
    if (n != waiting)
        return -EIO;
    note->pending_length = (size_t)n;
    return 0;
}

static int note_counter(struct note *note)
{
    char text[1024];
    int r = read_info(note->fd, text, sizeof text);
    if (r < 0)
        return r;
    if (field(text, "eventfd-semaphore:", 10))
        return -EBADF;
    note->count = (unsigned)field(text, "eventfd-count:", 16);
    return 0;
}

static int note_queue(struct note *note)
{
    char text[8192];
    int r = read_info(note->fd, text, sizeof text);
    if (r < 0)
        return r;
    for (const char *at = text; (at = strstr(at, "tfd:")); at += 4) {
        if (watches_count == WATCHES_MAX)
            return -E2BIG;
        watches[watches_count].queue = note->fd;
        watches[watches_count].fd = (int)strtol(at + 4, NULL, 10);
        watches[watches_count].event.events = (uint32_t)field(at, "events:", 16);
        watches[watches_count].event.data.u64 = field(at, "data:", 16);
        watches_count++;
    }
    return 0;
}

static int note_one(int fd)
{
    if (notes_count == NOTES_MAX)
        return -E2BIG;
    struct note *note = &notes[notes_count++];
    *note = (struct note){.fd = fd, .status = fcntl(fd, F_GETFL), .close_on_exec = fcntl(fd, F_GETFD) & FD_CLOEXEC};

    char path[64], target[64];
    proc_path(path, "fd/", fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    struct stat st;
    if (strncmp(target, "pipe:", 5) == 0) {
        note->kind = KIND_PIPE;
        return note_pipe(note);
    }
    if (strcmp(target, "anon_inode:[eventfd]") == 0) {
        note->kind = KIND_EVENT_COUNTER;
        return note_counter(note);
    }
    if (strcmp(target, "anon_inode:[eventpoll]") == 0) {
        note->kind = KIND_EVENT_QUEUE;
        return note_queue(note);
    }
    if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
        note->kind = KIND_NULL;
        return 0;
    }
    return -EBADF;
}

static int note_above(void *context, int fd)
{
    const int *first = context;
    return fd < *first ? 0 : note_one(fd);
}

int descriptors_note(int first)
{
    return proc_each("/proc/self/fd", note_above, &first);
}

/* Moves a descriptor to a number above all noted ones, so that none of those is taken. */
static int lift(int fd)
{
    int above = 0;
    for (unsigned i = 0; i < notes_count; i++)
        if (notes[i].fd >= above)
            above = notes[i].fd + 1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, above);
    int error = errno;
    close(fd);
    return high < 0 ? -error : high;
}

/* Gives a new descriptor its number and flags; the new one is gone afterwards, unless it had them already. */
static int place(int fd, const struct note *note)
{
    if (fd < 0)
        return -errno;
    if (fd == note->fd)
        return note->close_on_exec || fcntl(fd, F_SETFD, 0) == 0 ? 0 : -errno;
    int r = dup3(fd, note->fd, note->close_on_exec ? O_CLOEXEC : 0) < 0 ? -errno : 0;
    close(fd);
    return r;
}

static bool same_pipe(unsigned a, unsigned b)
{
    return notes[a].kind == KIND_PIPE && notes[b].kind == KIND_PIPE && notes[a].pipe == notes[b].pipe;
}

/* Both ends at once, when the first of them comes up. Numbers are mostly given in the order they were: then the new
 * ends are in their places already. */
static int renew_pipe(unsigned at)
{
    unsigned other = at + 1;
    for (unsigned i = 0; i < at; i++)
        if (same_pipe(i, at))
            return 0;
    while (other < notes_count && !same_pipe(at, other))
        other++;
    if (other == notes_count)
        return -EBADF;
    const struct note *out = &notes[at], *in = &notes[other];
    if ((out->status & O_ACCMODE) != O_RDONLY) {
        out = &notes[other];
        in = &notes[at];
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | (out->status & O_NONBLOCK)) < 0)
        return -errno;
    if (ends[0] != out->fd || ends[1] != in->fd) {
        ends[0] = lift(ends[0]);
        ends[1] = lift(ends[1]);
    }
    if (out->pending_length && write(ends[1], out->pending, out->pending_length) != (ssize_t)out->pending_length)
        return -EIO;
    int r = place(ends[0], out);
    if (r == 0)
        r = place(ends[1], in);
    if (r == 0 && (in->status ^ out->status) & O_NONBLOCK && fcntl(in->fd, F_SETFL, in->status & O_NONBLOCK) < 0)
        r = -errno;
    return r;
}

static int renew_one(unsigned at)
{
    const struct note *note = &notes[at];
    switch (note->kind) {
    case KIND_PIPE:
        return renew_pipe(at);
    case KIND_EVENT_COUNTER:
        return place(eventfd(note->count, EFD_CLOEXEC | (note->status & O_NONBLOCK)), note);
    case KIND_EVENT_QUEUE:
        return place(epoll_create1(EPOLL_CLOEXEC), note);
    case KIND_NULL:
        return place(open("/dev/null", (note->status & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC), note);
    }
    return -EINVAL;
}

int descriptors_renew(void)
{
    for (unsigned i = 0; i < notes_count; i++) {
        int r = renew_one(i);
        if (r < 0)
            return r;
    }
    for (unsigned i = 0; i < watches_count; i++)
        if (epoll_ctl(watches[i].queue, EPOLL_CTL_ADD, watches[i].fd, &watches[i].event) < 0)
            return -errno;
    return 0;
}
