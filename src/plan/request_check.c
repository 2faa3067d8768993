/* Owns what may be asked for: the words of isolation, network and the like, and what only the whole request shows.
 * Called by the setters and before a run; changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "plan/request.h"
#include "plan/word.h"

#define WORDS_MAX 8

/* The first `available` words can be had, the others are known but not in this version. Asking for one of those is
 * asking for an isolation that cannot be enforced, and is told apart from a misspelt word. */
static const struct {
    const char *field;
    size_t available, count;
    const char *words[WORDS_MAX];
} vocabulary[] = {
    {"isolation", 1, 6, {"container", "restricted", "process", "oci", "gvisor", "vm"}},
    {"network", 1, 1, {"none"}},
    {"environment", 1, 1, {"host"}},
    {"on_output_limit", 2, 2, {"cut", "stop"}},
    {"output_encoding", 2, 2, {"utf8", "base64"}},
};

static int unavailable(const char *field, const char *word, const char *available, cordon_error *err)
{
    error_set(err, CORDON_EUNENFORCEABLE, field, "%s '%s' is not available in this version (available: %s)", field,
              word_show(word).text, available);
    if (err)
        snprintf(err->field, sizeof err->field, "/%s", field);
    return CORDON_EUNENFORCEABLE;
}

int request_check_word(const char *field, const char *word, cordon_error *err)
{
    size_t row = 0;
    while (row < ARRAY_LEN(vocabulary) && strcmp(vocabulary[row].field, field) != 0)
        row++;
    if (!word || row == ARRAY_LEN(vocabulary))
        return 0;
    char list[128];
    /* An OCI runtime is named after a colon. */
    bool oci = !strcmp(field, "isolation") && !strncmp(word, "oci:", 4) && word[4];
    for (size_t i = 0; i < vocabulary[row].count; i++) {
        if (!oci && strcmp(vocabulary[row].words[i], word) != 0)
            continue;
        if (!oci && i < vocabulary[row].available)
            return 0;
        return unavailable(field, word, word_list(vocabulary[row].words, vocabulary[row].available, list, sizeof list),
                           err);
    }
    return error_field(err, word_pointer("", field).text, "%s '%s' is not known (available: %s)", field,
                       word_show(word).text,
                       word_list(vocabulary[row].words, vocabulary[row].available, list, sizeof list));
}

/* Orders a path right before what lies beneath it: '/' sorts below every other byte. */
static int compare_paths(const void *a, const void *b)
{
    const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;
    while (*x && *x == *y)
        x++, y++;
    int left = *x == '/' ? 1 : *x ? *x + 1 : 0, right = *y == '/' ? 1 : *y ? *y + 1 : 0;
    return left - right;
}

/* No path twice, and none that is a file here and a directory there. */
static int check_files(const cordon_request *request, cordon_error *err)
{
    if (request->file_count < 2)
        return 0;
    auto_free const char **paths = calloc(request->file_count, sizeof *paths);
    if (!paths)
        return error_nomem(err);
    for (size_t i = 0; i < request->file_count; i++)
        paths[i] = request->files[i].path;
    qsort(paths, request->file_count, sizeof *paths, compare_paths);
    for (size_t i = 1; i < request->file_count; i++) {
        size_t length = strlen(paths[i - 1]);
        if (strncmp(paths[i - 1], paths[i], length) != 0)
            continue;
        struct word_pointer field = word_pointer("/files", paths[i]);
        if (paths[i][length] == '\0')
            return error_field(err, field.text, "file '%s' is given twice", word_show(paths[i]).text);
        if (paths[i][length] == '/')
            return error_field(err, field.text, "'%s' lies beneath '%s', which is given as a file",
                               word_show(paths[i]).text, word_show(paths[i - 1]).text);
    }
    return 0;
}

static int check_entry(const cordon_request *request, cordon_error *err)
{
    if (!request->entry)
        return 0;
    if (request->has_code)
        return error_field(err, "/entry", "entry names one of the files, but the program is given as code; give one");
    for (size_t i = 0; i < request->file_count; i++)
        if (!strcmp(request->files[i].path, request->entry))
            return 0;
    return error_field(err, "/entry", "entry '%s' is not one of the files", word_show(request->entry).text);
}

int request_check(const cordon_request *request, cordon_error *err)
{
    if (!request->language)
        return error_field(err, "/language", "language is missing; expected a name such as python");
    if (!request->has_code && request->file_count == 0)
        return error_field(err, "/code", "there is nothing to run; expected code or files");
    const struct {
        const char *field, *word;
    } words[] = {
        {"isolation", request->isolation}, {"network", request->network}, {"environment", request->environment}};
    int failed = check_files(request, err);
    if (!failed)
        failed = check_entry(request, err);
    for (size_t i = 0; i < ARRAY_LEN(words) && !failed; i++)
        failed = request_check_word(words[i].field, words[i].word, err);
    return failed;
}
