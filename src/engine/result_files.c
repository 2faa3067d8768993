/* Owns the files of a result, from the work directory to their JSON. Called by run.c at the end of a program and by
 * result_json.c. */
#include "engine/result_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "output/collect.h"
#include "output/utf8.h"
#include "plan/path.h"

static void append(void *sink, const void *bytes, size_t length)
{
    buf_append(sink, bytes, length);
}

/* The bytes as they are to be seen; takes them, and gives some to be freed. NULL when memory is out. */
static char *filter_bytes(const cordon_filter *filter, char *bytes, size_t *length)
{
    if (!bytes || !filter || !filter->text)
        return bytes;
    struct buf clean = {0};
    filter->text(filter->context, "file", bytes, *length, append, &clean);
    buf_append(&clean, "", 0);
    free(bytes);
    *length = clean.length;
    if (clean.failed)
        buf_free(&clean);
    return clean.data;
}

static char *filter_path(const cordon_filter *filter, const char *path)
{
    size_t length = strlen(path);
    return filter_bytes(filter, strdup(path), &length);
}

static int compare_paths(const void *path, const void *file)
{
    return strcmp(path, ((const struct collected_file *)file)->path);
}

/* How JSON shows a path that is not UTF-8; *why says why it shows none. */
static char *shown_path(const struct collected *found, const char *path, const char **why)
{
    char *shown = utf8_escape(path, strlen(path));
    if (!shown || !bsearch(shown, found->items, found->count, sizeof *found->items, compare_paths))
        return shown;
    *why = "its name is not UTF-8, and is shown like that of another file";
    free(shown);
    return NULL;
}

static int read_content(const struct collected_file *from, const cordon_filter *filter, struct result_file *file)
{
    file->content = malloc(from->size + 1);
    /* Everything in the cell was killed; a size that still differs is the end of a shorter file. */
    ssize_t n = file->content ? fd_read_all(from->fd, file->content, from->size) : -1;
    if (n < 0) {
        free(file->content);
        file->content = NULL;
        return -1;
    }
    file->size = (size_t)n;
    file->content[n] = '\0';
    file->content = filter_bytes(filter, file->content, &file->size);
    return file->content ? 0 : -1;
}

/* NULL when the result has the file; else why it has not. */
static const char *add_file(cordon_result *result, struct collected *found, struct collected_file *from,
                            const cordon_filter *filter, uint64_t *room)
{
    struct result_file file = {0};
    const char *why = NULL;
    if (!request_path_is_safe(from->path))
        return "its path is longer than the 1024 bytes that a request's may have";
    if (from->size > *room)
        return "it does not fit into the 8 MiB that the files of a result have together";
    auto_free char *path = filter_path(filter, from->path);
    bool is_text = path && utf8_valid(path, strlen(path));
    file.shown = is_text || !path ? NULL : shown_path(found, path, &why);
    if (why)
        return why;
    if ((!is_text && !file.shown) || read_content(from, filter, &file) < 0) {
        free(file.shown);
        return "it could not be read";
    }
    *room -= from->size;
    file.path = take_ptr(&path);
    sha256_hex(file.content, file.size, file.sha256);
    result->files[result->file_count++] = file;
    return NULL;
}

static struct collect_known *list_known(const struct prepared_step *step)
{
    struct collect_known *known = calloc(step->plan.file_count + 1, sizeof *known);
    for (size_t i = 0; known && i < step->plan.file_count; i++)
        known[i] = (struct collect_known){.path = step->files[i].path,
                                          .content = step->files[i].content,
                                          .size = step->files[i].length,
                                          .fd = step->file_fds[i]};
    return known;
}

void result_collect(cordon_result *result, int work_fd, const cordon_request *request, const struct prepared_step *step,
                    const cordon_filter *filter)
{
    const struct strings *globs = &request->collect;
    struct collected found = {0};
    uint64_t room = COLLECT_RESULT_BYTES_MAX;
    if (!globs->count || work_fd < 0)
        return;
    auto_free struct collect_known *known = list_known(step);
    size_t known_count = request->collect_all || !known ? 0 : step->plan.file_count;
    if (collect_changed(work_fd, globs->items, globs->count, known, known_count, &found, NULL) < 0)
        return;
    result->files = calloc(found.count + 1, sizeof *result->files);
    for (size_t i = 0; result->files && i < found.count; i++) {
        const char *why = add_file(result, &found, &found.items[i], filter, &room);
        struct stat st = {.st_mode = S_IFREG, .st_size = (off_t)found.items[i].size};
        if (why)
            collect_skip(&found, found.items[i].path, &st, why);
    }
    for (size_t i = 0; i < found.skipped_count; i++) {
        char *path = filter_path(filter, found.skipped_items[i].path);
        free(found.skipped_items[i].path);
        found.skipped_items[i].path = path;
    }
    result->skipped = found.skipped;
    result->skipped_items = take_ptr(&found.skipped_items);
    result->skipped_count = found.skipped_count;
    found.skipped_count = 0;
    collected_free(&found);
}

void result_files_free(cordon_result *result)
{
    for (size_t i = 0; i < result->file_count; i++) {
        free(result->files[i].path);
        free(result->files[i].shown);
        free(result->files[i].content);
    }
    for (size_t i = 0; i < result->skipped_count; i++)
        free(result->skipped_items[i].path);
    free(result->files);
    free(result->skipped_items);
}

/* Text that JSON carries at about its own size; a control character would take six. */
static bool is_plain_text(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] < 0x20 && (!bytes[i] || !strchr("\t\n\r", bytes[i])))
            return false;
    return utf8_valid(bytes, length);
}

static json_t *base64_json(const char *bytes, size_t length)
{
    size_t encoded_length;
    auto_free char *encoded = base64_encode(bytes, length, &encoded_length);
    return encoded ? json_stringn(encoded, encoded_length) : NULL;
}

json_t *result_files_json(const cordon_result *result)
{
    json_t *list = json_array();
    for (size_t i = 0; i < result->file_count; i++) {
        const struct result_file *file = &result->files[i];
        json_t *object = json_pack("{s:s}", "path", file->shown ? file->shown : file->path);
        if (file->shown)
            json_object_set_new(object, "path_base64", base64_json(file->path, strlen(file->path)));
        json_object_set_new(object, "size", json_integer((json_int_t)file->size));
        json_object_set_new(object, "sha256", json_string(file->sha256));
        if (is_plain_text(file->content, file->size))
            json_object_set_new(object, "content", json_stringn(file->content, file->size));
        else
            json_object_set_new(object, "content_base64", base64_json(file->content, file->size));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *path_json(const char *path)
{
    if (!path || utf8_valid(path, strlen(path)))
        return json_string(path ? path : "");
    auto_free char *shown = utf8_escape(path, strlen(path));
    return json_string(shown ? shown : "");
}

json_t *result_files_skipped_json(const cordon_result *result)
{
    json_t *items = json_array();
    for (size_t i = 0; i < result->skipped_count; i++) {
        const struct collect_skipped *item = &result->skipped_items[i];
        json_array_append_new(items, json_pack("{s:o, s:o, s:s}", "path", path_json(item->path), "size",
                                               item->has_size ? json_integer((json_int_t)item->size) : json_null(),
                                               "why", item->why));
    }
    return json_pack("{s:I, s:o}", "count", (json_int_t)result->skipped, "items", items);
}
