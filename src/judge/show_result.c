/* Owns the change of a whole result into what may be seen of it: every part that a program had a hand in goes through
 * the filter. Called by judge.c, once a request. */
#include <string.h>

#include "base/cleanup.h"
#include "engine/result.h"
#include "judge/show.h"

static void append(void *sink, const void *bytes, size_t length)
{
    buf_append(sink, bytes, length);
}

static int replace(const cordon_filter *filter, int stream, char **text, size_t *length)
{
    struct buf clean = {0};
    if (!*text)
        return 0;
    show_filter(filter, stream, (struct slice){*text, *length}, &clean);
    if (clean.failed) {
        buf_free(&clean);
        return -1;
    }
    free(*text);
    *text = clean.data;
    *length = clean.length;
    return 0;
}

static int replace_string(const cordon_filter *filter, char **text)
{
    size_t length = *text ? strlen(*text) : 0;
    return replace(filter, 0, text, &length);
}

static int show_outcome(struct outcome *outcome, const cordon_filter *filter)
{
    for (int i = 0; i < 2; i++)
        if (replace(filter, i + 1, &outcome->out[i], &outcome->out_length[i]) < 0)
            return -1;
    return 0;
}

static int show_file(struct result_file *file, const cordon_filter *filter)
{
    struct buf clean = {0};
    if (!filter->text)
        return 0;
    buf_append(&clean, "", 0);
    filter->text(filter->context, "file", file->content, file->size, append, &clean);
    if (clean.failed) {
        buf_free(&clean);
        return -1;
    }
    free(file->content);
    file->content = clean.data;
    file->size = clean.length;
    sha256_hex(file->content, file->size, file->sha256);
    return replace_string(filter, &file->path) < 0 ? -1 : replace_string(filter, &file->shown);
}

static int show_value(cordon_result *result, const cordon_filter *filter)
{
    struct buf clean = {0};
    if (!filter->text || !result->value)
        return 0;
    buf_append(&clean, "", 0);
    filter->text(filter->context, "value", result->value, result->value_length, append, &clean);
    if (clean.failed) {
        buf_free(&clean);
        return -1;
    }
    free(result->value);
    result->value = clean.data;
    result->value_length = clean.length;
    return 0;
}

int show_result(cordon_result *result, const cordon_filter *filter)
{
    /* What was read from the program's messages may hold what those held. The rest is Cordon's or the caller's own. */
    char **const texts[] = {&result->error.type,    &result->error.message,   &result->error.file,
                            &result->error.snippet, &result->error.traceback, &result->error.hint};
    int code = filter ? show_outcome(&result->program, filter) : 0;
    if (!filter)
        return 0;
    if (code == 0 && result->compile)
        code = show_outcome(result->compile, filter);
    for (size_t i = 0; i < ARRAY_LEN(texts) && code == 0; i++)
        code = replace_string(filter, texts[i]);
    if (code == 0)
        code = show_value(result, filter);
    for (size_t i = 0; i < result->file_count && code == 0; i++)
        code = show_file(&result->files[i], filter);
    return code;
}
