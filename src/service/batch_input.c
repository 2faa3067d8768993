/* Owns reading the requests of `cordon batch`. Called by cmd_batch.c. */
#include "service/batch_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

static bool is_blank(const char *line)
{
    return !line[strspn(line, " \t\r\n")];
}

/* How many there will be, where that can be told beforehand. */
static size_t count_lines(FILE *file)
{
    struct stat status;
    auto_free char *line = NULL;
    size_t capacity = 0, count = 0;
    if (fstat(fileno(file), &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    while (getline(&line, &capacity, file) > 0)
        count += !is_blank(line);
    rewind(file);
    return count;
}

int batch_input_open(struct batch_input *input, const char *path, size_t *total, cordon_error *err)
{
    *input = (struct batch_input){.seen = json_object()};
    if (!input->seen)
        return error_nomem(err);
    input->file = strcmp(path, "-") != 0 ? fopen(path, "re") : stdin;
    if (!input->file)
        return error_set(err, CORDON_EINVAL, "input", "cannot read %s: %s", path, strerror(errno));
    *total = count_lines(input->file);
    return 0;
}

void batch_input_close(struct batch_input *input)
{
    if (input->file && input->file != stdin)
        fclose(input->file);
    json_decref(input->seen);
    free(input->line);
    *input = (struct batch_input){0};
}

void task_free(struct task *task)
{
    json_decref(task->id);
    json_decref(task->request);
    free(task->key);
    *task = (struct task){0};
}

char *batch_key(const json_t *id, size_t line)
{
    char *key = NULL;
    if (!line)
        return json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    return asprintf(&key, "#%zu", line) < 0 ? NULL : key;
}

static int take_id(struct task *task)
{
    json_t *id = json_object_get(task->request, "id");
    if (!id)
        return 0;
    if (!json_is_string(id) && !json_is_integer(id))
        return error_field(&task->error, "/id", "the id is neither a string nor a whole number");
    task->id = json_incref(id);
    json_object_del(task->request, "id");
    return 0;
}

static int parse_line(const char *line, size_t length, struct task *task)
{
    json_error_t where;
    task->request = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!task->request)
        return error_field(&task->error, "", "invalid JSON at column %d: %s", where.column, where.text);
    if (!json_is_object(task->request))
        return error_field(&task->error, "", "the line is no object; expected a request");
    return take_id(task);
}

/* A line that is no JSON is hashed as it is, so that it is looked at again once it is repaired. */
static int take_hash(struct task *task, const char *line, size_t length)
{
    auto_free char *text =
        task->request ? json_dumps(task->request, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    uint8_t digest[SHA256_BYTES];
    if (task->request && !text)
        return -1;
    sha256_of(text ? text : line, text ? strlen(text) : length, digest);
    sha256_text(digest, task->hash);
    return 0;
}

/* A second request with one id is told by its line, so that its refusal does not take the place of the first's result.
 */
static int take_place(struct batch_input *input, struct task *task)
{
    auto_free char *key = task->id ? batch_key(task->id, 0) : NULL;
    const json_t *before = key ? json_object_get(input->seen, key) : NULL;
    if (task->id && !key)
        return -1;
    if (before)
        error_field(&task->error, "/id", "line %lld has this id already", (long long)json_integer_value(before));
    else if (key)
        json_object_set_new(input->seen, key, json_integer((json_int_t)input->number));
    task->at = input->number;
    task->line = task->id && !before ? 0 : input->number;
    if (!task->id)
        task->id = json_integer((json_int_t)input->number);
    task->key = batch_key(task->id, task->line);
    return task->id && task->key ? 0 : -1;
}

static int read_task(struct batch_input *input, size_t length, struct task *task, cordon_error *err)
{
    *task = (struct task){0};
    parse_line(input->line, length, task);
    if (take_hash(task, input->line, length) < 0 || take_place(input, task) < 0) {
        task_free(task);
        return error_nomem(err);
    }
    if (task->error.code) {
        json_decref(task->request);
        task->request = NULL;
    }
    return 1;
}

int batch_input_next(struct batch_input *input, struct task *task, cordon_error *err)
{
    for (ssize_t length; (length = getline(&input->line, &input->capacity, input->file)) >= 0;) {
        input->number++;
        if (!is_blank(input->line))
            return read_task(input, (size_t)length, task, err);
    }
    return ferror(input->file) ? error_sys(err, errno, "input", "cannot read the requests") : 0;
}
