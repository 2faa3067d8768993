/* Owns the way to the data directory and the lock in it. What lies there decides what history says, so a directory
 * that others may write to is refused. Called when a store is opened, and by commands that look for one. */
#include "store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"

#define LOCK_TRIES   20
#define LOCK_WAIT_NS 50000000

static char *joined(const char *base, const char *rest)
{
    char *path = NULL;
    return asprintf(&path, "%s%s", base, rest) < 0 ? NULL : path;
}

static const char *absolute_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value == '/' ? value : NULL;
}

char *store_default_dir(void)
{
    const char *given = getenv("CORDON_DATA_DIR");
    if (given && *given)
        return strdup(given);
    const char *state = absolute_variable("STATE_DIRECTORY");
    if (state)
        return strndup(state, strcspn(state, ":"));
    if (geteuid() == 0)
        return strdup("/var/lib/cordon");
    const char *base = absolute_variable("XDG_STATE_HOME"), *home = absolute_variable("HOME");
    if (base)
        return joined(base, "/cordon");
    return home ? joined(home, "/.local/state/cordon") : NULL;
}

/* Parents get the usual mode: only the last directory holds anything of ours. */
static int make_directory(const char *path)
{
    auto_free char *copy = strdup(path);
    if (!copy)
        return -1;
    for (char *slash = copy + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return mkdir(copy, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

static int check_owner(int fd, const char *path, cordon_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_sys(err, errno, "store", "looking at %s", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        error_set(err, CORDON_ESYSTEM, "store", "the data directory %s may be written by others (mode %04o)", path,
                  (unsigned)st.st_mode & 07777);
        return error_hint(err, "chmod 700 %s, after making sure that nobody has changed what is in it", path);
    }
    if (st.st_uid != geteuid() && geteuid() != 0) {
        error_set(err, CORDON_ESYSTEM, "store", "the data directory %s belongs to user %u, not to %u", path,
                  (unsigned)st.st_uid, (unsigned)geteuid());
        return error_hint(err, "name another with --data-dir, or run as its owner");
    }
    return 0;
}

int place_open(const char *data_dir, bool make, char **path, int *fd, cordon_error *err)
{
    if (make && make_directory(data_dir) < 0)
        return error_sys(err, errno, "store", "making the data directory %s", data_dir);
    auto_close int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT) {
        error_set(err, CORDON_ENOTFOUND, "store", "there is no data directory %s", data_dir);
        return error_hint(err, "name it with --data-dir or CORDON_DATA_DIR");
    }
    if (dir < 0)
        return error_sys(err, errno, "store", "opening the data directory %s", data_dir);
    auto_free char *real = realpath(data_dir, NULL);
    if (!real)
        return error_sys(err, errno, "store", "finding the data directory %s", data_dir);
    int code = check_owner(dir, real, err);
    if (code < 0)
        return code;
    *path = take_ptr(&real);
    *fd = take_fd(&dir);
    return 0;
}

static int locked_elsewhere(int lock, const char *path, cordon_error *err)
{
    char holder[32] = "";
    ssize_t length = pread(lock, holder, sizeof holder - 1, 0);
    holder[length > 0 ? length : 0] = '\0';
    holder[strspn(holder, "0123456789")] = '\0';
    error_set(err, CORDON_ESTATE, "store", "the data directory %s is in use by another cordon%s%s%s", path,
              *holder ? " (process " : "", holder, *holder ? ")" : "");
    return error_hint(err, "stop that one, or give this one another --data-dir");
}

int place_lock(int dir, const char *path, int *lock, cordon_error *err)
{
    auto_close int fd = openat(dir, PLACE_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, errno, "store", "opening %s/" PLACE_LOCK, path);
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_sys(err, errno, "store", "locking %s/" PLACE_LOCK, path);
        if (i == LOCK_TRIES)
            return locked_elsewhere(fd, path, err);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    /* For the message above only; without it the message is shorter. */
    char text[24];
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)length, 0);
    *lock = take_fd(&fd);
    return 0;
}
