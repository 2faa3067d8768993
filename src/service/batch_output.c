/* Owns the result file of `cordon batch`. Called by cmd_batch.c. */
#include "service/batch_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/report.h"

/* A number and a text are different ids. */
static char *id_key(const json_t *id)
{
    return id ? json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

bool batch_output_has(const struct batch_output *output, const json_t *id)
{
    auto_free char *key = id_key(id);
    return key && json_object_get(output->done, key);
}

/* True when the line is to stay. Of two results of one id the later one counts. */
static bool note_line(struct batch_output *output, const char *line, size_t length, bool retry, bool *is_result)
{
    auto_json json_t *result = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
    auto_free char *key = id_key(json_object_get(result, "id"));
    bool good = json_is_true(json_object_get(result, "success"));
    *is_result = json_is_object(result) && key && json_object_get(result, "status");
    if (!*is_result || (retry && !good))
        return false;
    const json_t *before = json_object_get(output->done, key);
    output->failed_before += !good;
    output->failed_before -= json_is_false(before);
    json_object_set_new(output->done, key, json_boolean(good));
    return true;
}

/* What stays goes to `kept`; *end is where the last whole line ends. */
static int read_lines(struct batch_output *output, FILE *file, bool retry, FILE *kept, off_t *end, cordon_error *err)
{
    auto_free char *line = NULL;
    size_t capacity = 0, number = 0;
    bool is_result = true;
    *end = 0;
    for (ssize_t n; (n = getline(&line, &capacity, file)) > 0;) {
        number++;
        bool is_whole = line[n - 1] == '\n';
        if (!is_whole)
            break;
        bool stays = note_line(output, line, (size_t)n, retry, &is_result);
        if (!is_result) {
            error_set(err, CORDON_EINVAL, "output", "line %zu of %s is no result of a batch", number, output->path);
            return error_hint(err, "name another file with -o");
        }
        if (stays && kept && fwrite(line, 1, (size_t)n, kept) != (size_t)n)
            return error_sys(err, errno, "output", "cannot write beside %s", output->path);
        *end += n;
    }
    return ferror(file) ? error_sys(err, errno, "output", "cannot read %s", output->path) : 0;
}

static void cleanup_file(FILE **file)
{
    if (*file)
        fclose(*file);
}
#define auto_file __attribute__((cleanup(cleanup_file)))

/* Writes a new file of what stays and puts it in the place of the old one, so that neither is ever half there. */
static int replace(struct batch_output *output, cordon_error *err)
{
    auto_buf struct buf name = {0};
    buf_printf(&name, "%s.new", output->path);
    auto_file FILE *file = fopen(output->path, "re");
    off_t end;
    if (!file)
        return errno == ENOENT ? 0 : error_sys(err, errno, "output", "cannot read %s", output->path);
    FILE *kept = fopen(buf_text(&name), "we");
    if (!kept)
        return error_sys(err, errno, "output", "cannot make %s", buf_text(&name));
    int code = read_lines(output, file, true, kept, &end, err);
    if (fclose(kept) != 0 && code == 0)
        code = error_sys(err, errno, "output", "cannot write %s", buf_text(&name));
    if (code == 0 && rename(buf_text(&name), output->path) < 0)
        code = error_sys(err, errno, "output", "cannot rename %s", buf_text(&name));
    if (code < 0)
        unlink(buf_text(&name));
    return code;
}

static int read_existing(struct batch_output *output, cordon_error *err)
{
    auto_file FILE *file = fdopen(dup(output->fd), "r");
    struct stat status;
    off_t end;
    if (!file || fstat(output->fd, &status) < 0)
        return error_sys(err, errno, "output", "cannot read %s", output->path);
    /* A pipe or a terminal holds nothing from before. */
    if (!S_ISREG(status.st_mode))
        return 0;
    int code = read_lines(output, file, false, NULL, &end, err);
    if (code == 0 && end < status.st_size && ftruncate(output->fd, end) < 0)
        code = error_sys(err, errno, "output", "cannot drop the unfinished last line of %s", output->path);
    return code;
}

int batch_output_open(struct batch_output *output, const char *path, bool retry, cordon_error *err)
{
    *output = (struct batch_output){.fd = -1, .path = path, .done = json_object()};
    pthread_mutex_init(&output->lock, NULL);
    int code = output->done ? 0 : error_nomem(err);
    if (code == 0 && retry)
        code = replace(output, err);
    json_object_clear(output->done);
    output->failed_before = 0;
    if (code == 0) {
        output->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (output->fd < 0) {
            error_set(err, CORDON_EINVAL, "output", "cannot write %s: %s", path, strerror(errno));
            code = CORDON_EINVAL;
        }
    }
    /* Two batches into one file would each do all the work. */
    if (code == 0 && flock(output->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        code = error_set(err, CORDON_EINVAL, "output", "another batch is writing %s", path);
    if (code == 0)
        code = read_existing(output, err);
    if (code < 0)
        batch_output_close(output);
    return code;
}

void batch_output_close(struct batch_output *output)
{
    cleanup_close(&output->fd);
    output->fd = -1;
    json_decref(output->done);
    output->done = NULL;
    pthread_mutex_destroy(&output->lock);
}

int batch_output_add(struct batch_output *output, const json_t *result, cordon_error *err)
{
    auto_free char *text = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(12));
    auto_buf struct buf line = {0};
    if (!text)
        return error_nomem(err);
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
