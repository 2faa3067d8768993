/* A process from its start to its last byte and its end, timed. Every runner that is not Cordon goes through here, so
 * that what the benchmark itself costs is the same for all. Several threads may be in here at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/bench/bench.h"

#define TIMEOUT_US (60 * 1000000ULL)
#define LOOK_MS    250
#define KEPT       1024

/* What came out of a stream: its beginning, to be compared or shown. */
struct stream {
    int fd;
    size_t length; /* all that came */
    char text[KEPT];
};

static void stream_read(struct stream *stream)
{
    char bytes[16384];
    ssize_t n = read(stream->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(stream->fd);
        stream->fd = -1;
        return;
    }
    if (stream->length < KEPT) {
        size_t room = KEPT - stream->length, taken = (size_t)n < room ? (size_t)n : room;
        memcpy(stream->text + stream->length, bytes, taken);
    }
    stream->length += (size_t)n;
}

/* Reads both to their ends; false when that took too long. An interrupted benchmark waits too: a runner that is killed
 * leaves its container behind. */
static bool streams_read(struct stream *streams, uint64_t deadline)
{
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        struct pollfd polled[] = {{.fd = streams[0].fd, .events = POLLIN}, {.fd = streams[1].fd, .events = POLLIN}};
        if (poll(polled, 2, LOOK_MS) <= 0 && clock_us() > deadline)
            return false;
        for (int i = 0; i < 2; i++)
            if (polled[i].revents)
                stream_read(&streams[i]);
    }
    return true;
}

/* A group of its own, so that Ctrl-C on a terminal ends the benchmark and not the runs it would then call failed. */
static int start(const struct process *process, const int output[2], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDERR_FILENO);
    if (process->filter_path)
        posix_spawn_file_actions_addopen(&actions, BENCH_FILTER_FD, process->filter_path, O_RDONLY, 0);
    if (process->directory)
        posix_spawn_file_actions_addchdir_np(&actions, process->directory);
    code = posix_spawn(pid, process->argv[0], &actions, &attributes, (char *const *)process->argv,
                       (char *const *)process->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* The first line of what was said on standard error, or else on standard output. */
static void put_saying(const struct stream *streams, char *text, size_t size)
{
    const struct stream *stream = &streams[streams[1].length ? 1 : 0];
    int length = (int)(stream->length < KEPT ? stream->length : KEPT);
    snprintf(text, size, "%.*s", length, stream->text);
    text[strcspn(text, "\n")] = '\0';
}

static bool printed(const struct stream *stream, const char *expected)
{
    size_t length = strlen(expected);
    return length <= KEPT && stream->length == length && !memcmp(stream->text, expected, length);
}

static void judge(const struct process *process, const struct stream *streams, int status, bool ended,
                  struct sample *sample)
{
    char saying[120];
    put_saying(streams, saying, sizeof saying);
    sample->ok = ended && status == 0 && (!process->output || printed(&streams[0], process->output));
    if (sample->ok)
        return;
    if (!ended)
        snprintf(sample->why, sizeof sample->why, "stopped: it did not end");
    else if (WIFSIGNALED(status))
        snprintf(sample->why, sizeof sample->why, "ended by signal %d: %s", WTERMSIG(status), saying);
    else if (status)
        snprintf(sample->why, sizeof sample->why, "exit status %d: %s", WEXITSTATUS(status), saying);
    else
        snprintf(sample->why, sizeof sample->why, "printed %zu bytes that are not the expected ones: %s",
                 streams[0].length, saying);
}

static void keep_output(const struct process *process, const struct stream *streams)
{
    if (!process->said)
        return;
    size_t used = 0;
    for (int i = 0; i < 2; i++) {
        size_t length = streams[i].length < KEPT ? streams[i].length : KEPT;
        size_t room = process->said_size - 1 - used;
        memcpy(process->said + used, streams[i].text, length < room ? length : room);
        used += length < room ? length : room;
    }
    process->said[used] = '\0';
}

void process_run(const struct process *process, struct sample *sample)
{
    *sample = (struct sample){0};
    int out[2], err[2], status = 0;
    pid_t pid;
    uint64_t begin = clock_us();
    if (pipe2(out, O_CLOEXEC) < 0) {
        snprintf(sample->why, sizeof sample->why, "pipe: %s", strerror(errno));
        return;
    }
    if (pipe2(err, O_CLOEXEC) < 0) {
        snprintf(sample->why, sizeof sample->why, "pipe: %s", strerror(errno));
        close(out[0]);
        close(out[1]);
        return;
    }
    struct stream streams[2];
    streams[0].fd = out[0];
    streams[1].fd = err[0];
    streams[0].length = streams[1].length = 0;
    int code = start(process, (int[]){out[1], err[1]}, &pid);
    close(out[1]);
    close(err[1]);
    if (code) {
        snprintf(sample->why, sizeof sample->why, "%s: %s", process->argv[0], strerror(code));
        close(out[0]);
        close(err[0]);
        return;
    }
    bool ended = streams_read(streams, begin + TIMEOUT_US);
    if (!ended)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    sample->wall_us = clock_us() - begin;
    for (int i = 0; i < 2; i++)
        cleanup_close(&streams[i].fd);
    judge(process, streams, status, ended, sample);
    keep_output(process, streams);
}
