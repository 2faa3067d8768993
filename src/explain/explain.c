/* Owns the error analysis: puts together what the status, the program's messages and the advice tables tell. Must not
 * fail a run: without a table or a match it says less. Called by the engine once a step has ended. */
#include "explain/explain.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "explain/hints.h"
#include "explain/missing.h"
#include "explain/scan.h"

#define SNIPPET_AROUND      2
#define SNIPPET_WIDTH       160
#define TRACEBACK_LINES_MAX 40
#define TRACEBACK_BYTES_MAX 4096
#define CAUSE_LINES_MAX     20
#define COMPILE_HINT        "fix the first error; later ones often follow from it"

#define auto_scan_text __attribute__((cleanup(scan_text_free)))
#define auto_finding   __attribute__((cleanup(finding_free)))

/* Replaces `*field` by a copy of `text`, where there is one. */
static void put(char **field, const char *text)
{
    if (!text)
        return;
    free(*field);
    *field = strdup(text);
}

void explanation_free(struct explanation *explanation)
{
    free(explanation->type);
    free(explanation->category);
    free(explanation->message);
    free(explanation->file);
    free(explanation->snippet);
    free(explanation->traceback);
    free(explanation->hint);
    *explanation = (struct explanation){0};
}

/* The lines round the error, the line itself marked. */
static char *make_snippet(const char *source, size_t length, long line)
{
    auto_buf struct buf out = {0};
    const char *end = source + length;
    long number = 1;
    for (const char *at = source; at < end && number <= line + SNIPPET_AROUND; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t width = (size_t)((stop ? stop : end) - at);
        if (number >= line - SNIPPET_AROUND)
            buf_printf(&out, "%s%c %4ld | %.*s", out.length ? "\n" : "", number == line ? '>' : ' ', number,
                       (int)(width < SNIPPET_WIDTH ? width : SNIPPET_WIDTH), at);
        at = stop ? stop + 1 : end;
    }
    return number > line && !out.failed ? take_ptr(&out.data) : NULL;
}

/* The block of lines that the error stands in: up to the blank line or the heading above it, and on to the end. */
static char *make_traceback(const struct scan_text *lines, size_t anchor)
{
    size_t first = anchor, last = lines->count;
    while (first > 0 && anchor - first < TRACEBACK_LINES_MAX && lines->lines[first - 1][0] &&
           strncmp(lines->lines[first], "Traceback ", 10) != 0)
        first--;
    while (last > anchor + 1 && !lines->lines[last - 1][0])
        last--;
    if (last > anchor + TRACEBACK_LINES_MAX)
        last = anchor + TRACEBACK_LINES_MAX;
    if (last - first < 2)
        return NULL;
    auto_buf struct buf out = {0};
    for (size_t i = first; i < last && out.length < TRACEBACK_BYTES_MAX; i++)
        buf_printf(&out, "%s%.*s", i > first ? "\n" : "", (int)(TRACEBACK_BYTES_MAX - out.length), lines->lines[i]);
    return out.failed ? NULL : take_ptr(&out.data);
}

/* "json.decoder.JSONDecodeError" and "std::out_of_range" are known by their last part too. */
static bool names_type(const char *row, const char *type)
{
    size_t length = strlen(type), part = strlen(row);
    if (part > length || strcmp(type + length - part, row) != 0)
        return false;
    return part == length || type[length - part - 1] == '.' || type[length - part - 1] == ':';
}

static const struct manifest_category *find_category(const struct manifest_notes *notes, const char *type)
{
    for (unsigned i = 0; type && i < notes->categories_count; i++)
        if (names_type(notes->categories[i].type, type))
            return &notes->categories[i];
    return NULL;
}

/* Some runtimes put the cause below the error: "TypeError: fetch failed", then "[cause]: getaddrinfo EAI_AGAIN". */
static const struct advice *advice_on(const char *message, const struct scan_text *lines, size_t anchor)
{
    const struct advice *advice = hint_for_message(message);
    for (size_t i = anchor + 1; !advice && i < lines->count && i < anchor + CAUSE_LINES_MAX; i++)
        advice = hint_for_message(lines->lines[i]);
    return advice;
}

/* Like advice_on(): the path may stand below the error. */
static char *file_hint(const struct explain_input *input, const struct explanation *explanation,
                       const struct scan_text *lines, size_t anchor)
{
    auto_buf struct buf said = {0};
    bool compiling = input->status == CORDON_STATUS_COMPILE_ERROR;
    buf_printf(&said, "%s: %s", explanation->type ? explanation->type : "error",
               explanation->message ? explanation->message : "");
    char *hint = missing_file_hint(buf_text(&said), compiling);
    for (size_t i = anchor + 1; !hint && i < lines->count && i < anchor + CAUSE_LINES_MAX; i++)
        hint = missing_file_hint(lines->lines[i], compiling);
    return hint;
}

static void put_owned(char **field, char *text)
{
    free(*field);
    *field = text;
}

/* What the message says of the cell beats what its type says of programs. */
static void advise_on_message(const struct explain_input *input, const struct manifest_notes *notes,
                              const struct scan_text *lines, size_t anchor, struct explanation *explanation)
{
    const char *message = explanation->message ? explanation->message : "";
    const struct advice *advice;
    char *hint = missing_module_hint(notes, message);
    if (!hint)
        hint = hidden_module_hint(input, message);
    if (hint) {
        put(&explanation->category, "import");
        put_owned(&explanation->hint, hint);
    } else if ((advice = advice_on(message, lines, anchor))) {
        put(&explanation->category, advice->category);
        put(&explanation->hint, advice->hint);
    } else if ((hint = file_hint(input, explanation, lines, anchor))) {
        put(&explanation->category, input->status == CORDON_STATUS_COMPILE_ERROR ? "import" : "input");
        put_owned(&explanation->hint, hint);
    }
}

/* The kernel's own account of a refusal says more than the errno it turned into. */
static void advise_on_denial(const struct explain_input *input, struct explanation *explanation)
{
    const struct denial *denial = input->denials;
    char *text = NULL;
    if (input->denial_count && explanation->category && strcmp(explanation->category, "permission") == 0 &&
        asprintf(&text, "%s was refused: %s", denial->what, denial->hint) >= 0)
        put_owned(&explanation->hint, text);
}

static void advise(const struct explain_input *input, const struct manifest_notes *notes, const struct scan_text *lines,
                   size_t anchor, struct explanation *explanation)
{
    const struct manifest_category *row = find_category(notes, explanation->type);
    if (row) {
        put(&explanation->category, row->category);
        put(&explanation->hint, row->hint);
    }
    advise_on_message(input, notes, lines, anchor, explanation);
    advise_on_denial(input, explanation);
    if (!explanation->hint && input->status == CORDON_STATUS_COMPILE_ERROR)
        put(&explanation->hint, COMPILE_HINT);
}

/* Without a row that fits, the last thing the program said is the best there is. */
static void take_last_line(const struct scan_text *lines, struct finding *finding)
{
    for (size_t i = lines->count; i-- > 0;)
        if (lines->lines[i][strspn(lines->lines[i], " \t")]) {
            finding->message = strdup(lines->lines[i]);
            finding->anchor = i;
            finding->found = true;
            return;
        }
}

static void describe(const struct explain_input *input, const struct scan_text *lines, struct finding *finding,
                     struct explanation *explanation)
{
    explanation->type = take_ptr(&finding->type);
    explanation->message = take_ptr(&finding->message);
    explanation->file = take_ptr(&finding->file);
    explanation->line = finding->line;
    explanation->column = finding->column;
    put(&explanation->category, finding->category                              ? finding->category
                                : input->status == CORDON_STATUS_COMPILE_ERROR ? "compile"
                                                                               : "runtime");
    if (finding->found)
        explanation->traceback = make_traceback(lines, finding->anchor);
    size_t length = 0;
    const char *source = input->source && explanation->file && explanation->line > 0
                             ? input->source(input->context, explanation->file, &length)
                             : NULL;
    if (source)
        explanation->snippet = make_snippet(source, length, explanation->line);
}

/* What ended the program is known from the kernel; its own messages only add the place. */
static void overrule(const struct explain_input *input, const struct advice *advice, const char *words,
                     struct explanation *explanation)
{
    put(&explanation->type, advice->type);
    put(&explanation->category, advice->category);
    put(&explanation->message, input->reason ? input->reason : words);
    put(&explanation->hint, advice->hint);
    if (input->status == CORDON_STATUS_DENIED && input->denial_count)
        put(&explanation->hint, input->denials[input->denial_count - 1].hint);
}

static bool has_nothing_to_tell(cordon_status status)
{
    return status == CORDON_STATUS_OK || status == CORDON_STATUS_CANCELLED || status == CORDON_STATUS_REJECTED ||
           status == CORDON_STATUS_INTERNAL_ERROR;
}

int explain(const struct explain_input *input, struct explanation *explanation)
{
    static const struct manifest_notes none;
    const struct manifest_notes *notes = &none;
    *explanation = (struct explanation){0};
    if (has_nothing_to_tell(input->status))
        return 0;
    if (input->manifest && manifest_notes(input->manifest, &notes, NULL) < 0)
        notes = &none;

    auto_scan_text struct scan_text lines;
    auto_finding struct finding finding = {0};
    int rc = scan_split(input->stderr_text ? input->stderr_text : "", input->stderr_length, &lines);
    if (rc < 0)
        return rc;
    scan_find(&lines, notes, input, &finding);

    const struct advice *status = hint_for_status(input->status);
    const char *words = NULL;
    if (!status && input->status == CORDON_STATUS_SIGNALED && !finding.found)
        status = hint_for_signal(input->signal, &words);
    if (!finding.found && !status)
        take_last_line(&lines, &finding);
    if (!finding.found && !status && !finding.file)
        return 0;

    describe(input, &lines, &finding, explanation);
    advise(input, notes, &lines, finding.anchor, explanation);
    if (status)
        overrule(input, status, words, explanation);
    if (!explanation->category) {
        explanation_free(explanation);
        return CORDON_ENOMEM;
    }
    return 1;
}
