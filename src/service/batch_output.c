/* Owns the result file of `cordon batch`. Called by cmd_batch.c. */
#include "service/batch_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/plain.h"
#include "cli/report.h"
#include "output/json_text.h"

/* How often the file may be replaced by another batch between its opening and its lock. */
#define OPEN_TRIES 16

static void cleanup_file(FILE **file)
{
    if (*file)
        fclose(*file);
}
#define auto_file __attribute__((cleanup(cleanup_file)))

static int drop(struct batch_output *output, off_t at, cordon_error *err)
{
    if (output->dropped_count == output->dropped_capacity) {
        size_t capacity = output->dropped_capacity ? 2 * output->dropped_capacity : 64;
        off_t *more = reallocarray(output->dropped, capacity, sizeof *more);
        if (!more)
            return error_nomem(err);
        output->dropped = more;
        output->dropped_capacity = capacity;
    }
    output->dropped[output->dropped_count++] = at;
    return 0;
}

/* Takes an entry out of the table, and later its line out of the file. */
static int forget(struct batch_output *output, const char *key, cordon_error *err)
{
    const json_t *entry = json_object_get(output->before, key);
    if (!entry)
        return 0;
    output->unhashed -= !json_object_get(entry, "hash");
    int code = drop(output, (off_t)json_integer_value(json_object_get(entry, "at")), err);
    json_object_del(output->before, key);
    return code;
}

static int not_a_result(const struct batch_output *output, size_t number, cordon_error *err)
{
    error_set(err, CORDON_EINVAL, "output", "line %zu of %s is no result of a batch", number, output->path);
    return error_hint(err, "name another file with -o");
}

/* The key of a result; NULL for what is none. */
static char *result_key(const json_t *result)
{
    const json_t *id = json_object_get(result, "id");
    json_int_t line = json_integer_value(json_object_get(result, "line"));
    return id && member_text(result, "status") ? batch_key(id, line > 0 ? (size_t)line : 0) : NULL;
}

/* Of two results of one request the later one counts: its batch was killed before it could take out the earlier. */
static int note(struct batch_output *output, const json_t *result, const char *key, off_t at, bool retry,
                cordon_error *err)
{
    int good = json_is_true(json_object_get(result, "success"));
    const char *hash = member_text(result, "request_sha256");
    int code = forget(output, key, err);
    if (code < 0)
        return code;
    if (retry && !good)
        return drop(output, at, err);
    output->unhashed += !hash;
    json_t *entry = json_pack("{s:I, s:b, s:s*}", "at", (json_int_t)at, "good", good, "hash", hash);
    return json_object_set_new(output->before, key, entry) < 0 ? error_nomem(err) : 0;
}

/* *end is where the last whole line ends. A line without its newline is the beginning of a result, or no business of
 * ours. */
static int read_lines(struct batch_output *output, FILE *file, bool retry, off_t *end, cordon_error *err)
{
    auto_free char *line = NULL;
    size_t capacity = 0, number = 0;
    *end = 0;
    for (ssize_t n; (n = getline(&line, &capacity, file)) > 0;) {
        number++;
        bool is_whole = line[n - 1] == '\n';
        auto_json json_t *result = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        auto_free char *key = result_key(result);
        if (!key && (is_whole || result || (n > 1 ? strncmp(line, "{\"", 2) : *line != '{')))
            return not_a_result(output, number, err);
        if (!is_whole)
            break;
        int code = note(output, result, key, *end, retry, err);
        if (code < 0)
            return code;
        *end += n;
    }
    return ferror(file) ? error_sys(err, errno, "output", "cannot read %s", output->path) : 0;
}

static FILE *open_for_reading(const struct batch_output *output)
{
    auto_close int fd = fcntl(output->fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? fdopen(fd, "r") : NULL;
    if (file)
        take_fd(&fd);
    return file;
}

static int read_existing(struct batch_output *output, bool retry, cordon_error *err)
{
    struct stat status;
    off_t end;
    json_object_clear(output->before);
    output->unhashed = output->dropped_count = 0;
    if (fstat(output->fd, &status) < 0)
        return error_sys(err, errno, "output", "cannot read %s", output->path);
    /* A pipe or a terminal holds nothing from before. */
    if (!S_ISREG(status.st_mode))
        return 0;
    auto_file FILE *file = open_for_reading(output);
    if (!file)
        return error_sys(err, errno, "output", "cannot read %s", output->path);
    int code = read_lines(output, file, retry, &end, err);
    if (code == 0 && end < status.st_size && ftruncate(output->fd, end) < 0)
        code = error_sys(err, errno, "output", "cannot drop the unfinished last line of %s", output->path);
    return code;
}

static bool is_still_there(const struct batch_output *output)
{
    struct stat ours, named;
    if (fstat(output->fd, &ours) < 0 || !S_ISREG(ours.st_mode))
        return true;
    return stat(output->path, &named) == 0 && ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/* Two batches into one file would each do all the work. The lock is the file's and not its name's, and a batch puts a
 * new file in the old one's place when it settles. */
static int open_locked(struct batch_output *output, cordon_error *err)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        cleanup_close(&output->fd);
        output->fd = open(output->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (output->fd < 0)
            return error_set(err, CORDON_EINVAL, "output", "cannot write %s: %s", output->path, strerror(errno));
        if (flock(output->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
            break;
        if (is_still_there(output))
            return 0;
    }
    return error_set(err, CORDON_EINVAL, "output", "another batch is writing %s", output->path);
}

static int open_existing(struct batch_output *output, bool retry, cordon_error *err)
{
    int code = open_locked(output, err);
    if (code == 0)
        code = read_existing(output, retry, err);
    if (code == 0 && output->dropped_count) {
        code = batch_output_settle(output, err);
        if (code == 0)
            code = read_existing(output, false, err);
    }
    return code;
}

int batch_output_open(struct batch_output *output, const char *path, bool retry, cordon_error *err)
{
    *output = (struct batch_output){.fd = -1, .path = path, .before = json_object()};
    pthread_mutex_init(&output->lock, NULL);
    int code = output->before ? 0 : error_nomem(err);
    if (code == 0 && !strcmp(path, "-")) {
        output->path = "standard output";
        output->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        code = output->fd < 0 ? error_sys(err, errno, "output", "cannot write standard output") : 0;
    } else if (code == 0) {
        code = open_existing(output, retry, err);
    }
    if (code < 0)
        batch_output_close(output);
    return code;
}

void batch_output_close(struct batch_output *output)
{
    cleanup_close(&output->fd);
    output->fd = -1;
    json_decref(output->before);
    output->before = NULL;
    free(output->dropped);
    output->dropped = NULL;
    pthread_mutex_destroy(&output->lock);
}

/* A line that had no id and has one leaves its result behind under its number, and a result without hash may stand
 * under the number that was its id. */
static int forget_others(struct batch_output *output, const struct task *task, cordon_error *err)
{
    auto_free char *key = task->line ? batch_key(task->id, 0) : batch_key(NULL, task->at);
    if (!key)
        return error_nomem(err);
    const json_t *entry = json_object_get(output->before, key);
    return entry && (!task->line || !json_object_get(entry, "hash")) ? forget(output, key, err) : 0;
}

int batch_output_find(struct batch_output *output, const struct task *task, enum batch_before *found, cordon_error *err)
{
    *found = BEFORE_NOTHING;
    int code = forget_others(output, task, err);
    const json_t *entry = json_object_get(output->before, task->key);
    if (code < 0 || !entry)
        return code;
    const char *hash = member_text(entry, "hash");
    if (!hash || strcmp(hash, task->hash) != 0) {
        *found = hash ? BEFORE_CHANGED : BEFORE_NOTHING;
        return forget(output, task->key, err);
    }
    *found = json_is_true(json_object_get(entry, "good")) ? BEFORE_GOOD : BEFORE_FAILED;
    return 0;
}

int batch_output_add(struct batch_output *output, const json_t *result, cordon_error *err)
{
    auto_free char *text = json_text(result, NULL);
    auto_buf struct buf line = {0};
    if (!text)
        return error_nomem(err);
    if (isatty(output->fd))
        plain_put_json(&line, text, strlen(text));
    else
        buf_puts(&line, text);
    buf_puts(&line, "\n");
    if (line.failed)
        return error_nomem(err);
    pthread_mutex_lock(&output->lock);
    int code = fd_write_all(output->fd, line.data, line.length);
    int why = errno;
    pthread_mutex_unlock(&output->lock);
    return code == 0 ? 0 : error_sys(err, why, "output", "cannot write %s", output->path);
}

static int compare_offsets(const void *a, const void *b)
{
    off_t x = *(const off_t *)a, y = *(const off_t *)b;
    return (x > y) - (x < y);
}

static int copy_kept(struct batch_output *output, int to, cordon_error *err)
{
    auto_file FILE *from = open_for_reading(output);
    auto_close int fd = fcntl(to, F_DUPFD_CLOEXEC, 0);
    auto_file FILE *kept = fd >= 0 ? fdopen(fd, "w") : NULL;
    auto_free char *line = NULL;
    size_t capacity = 0;
    off_t at = 0;
    if (kept)
        take_fd(&fd);
    if (!from || !kept)
        return error_sys(err, errno, "output", "cannot read %s", output->path);
    qsort(output->dropped, output->dropped_count, sizeof *output->dropped, compare_offsets);
    for (ssize_t n; (n = getline(&line, &capacity, from)) > 0; at += n) {
        bool is_dropped = bsearch(&at, output->dropped, output->dropped_count, sizeof at, compare_offsets);
        if (!is_dropped && fwrite(line, 1, (size_t)n, kept) != (size_t)n)
            break;
    }
    if (ferror(from))
        return error_sys(err, errno, "output", "cannot read %s", output->path);
    return fflush(kept) == 0 && !ferror(kept) ? 0
                                              : error_sys(err, errno, "output", "cannot write beside %s", output->path);
}

/* Like the old file, but that it is empty; owner and group as far as the user may. */
static int open_beside(const struct batch_output *output, const char *name)
{
    struct stat status;
    unlink(name);
    auto_close int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(output->fd, &status) < 0)
        return -1;
    if ((fchown(fd, status.st_uid, status.st_gid) < 0 && errno != EPERM) || fchmod(fd, status.st_mode & 0777) < 0 ||
        flock(fd, LOCK_EX | LOCK_NB) < 0) {
        unlink(name);
        return -1;
    }
    return take_fd(&fd);
}

/* Writes a new file of what stays and puts it in the place of the old one, so that neither is ever half there. */
int batch_output_settle(struct batch_output *output, cordon_error *err)
{
    if (!output->dropped_count)
        return 0;
    auto_free char *real = realpath(output->path, NULL);
    auto_free char *name = NULL;
    if (!real || asprintf(&name, "%s.new", real) < 0)
        return error_sys(err, errno, "output", "cannot find %s", output->path);
    auto_close int fd = open_beside(output, name);
    if (fd < 0)
        return error_sys(err, errno, "output", "cannot make %s", name);
    int code = copy_kept(output, fd, err);
    if (code == 0 && rename(name, real) < 0)
        code = error_sys(err, errno, "output", "cannot rename %s", name);
    if (code < 0) {
        unlink(name);
        return code;
    }
    cleanup_close(&output->fd);
    output->fd = take_fd(&fd);
    output->dropped_count = 0;
    return 0;
}
