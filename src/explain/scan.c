/* Owns the search through a program's messages. The text is hostile: only its end is read, lines are cut, and the clock
 * is watched, so that no output makes the analysis slow. Called by explain() alone. */
#include "explain/scan.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define TEXT_MAX   65536
#define LINES_MAX  4096
#define GROUPS_MAX 10
#define BUDGET_US  50000
#define NUMBER_MAX 100000000 /* of lines and columns that are believed */

int scan_split(const char *text, size_t length, struct scan_text *lines)
{
    *lines = (struct scan_text){0};
    size_t used = length < TEXT_MAX ? length : TEXT_MAX;
    lines->bytes = malloc(used + 1);
    lines->lines = malloc(LINES_MAX * sizeof *lines->lines);
    if (!lines->bytes || !lines->lines) {
        scan_text_free(lines);
        return CORDON_ENOMEM;
    }
    if (used)
        memcpy(lines->bytes, text + (length - used), used);
    lines->bytes[used] = '\0';
    for (size_t i = 0; i < used; i++)
        if (lines->bytes[i] == '\0')
            lines->bytes[i] = ' ';

    size_t total = 0;
    for (char *at = lines->bytes, *next; at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        size_t width = strcspn(at, "\r");
        at[width < SCAN_LINE_MAX ? width : SCAN_LINE_MAX] = '\0';
        lines->lines[total++ % LINES_MAX] = at; /* the newest ones stay */
    }
    lines->count = total < LINES_MAX ? total : LINES_MAX;
    if (total > LINES_MAX) {
        char **turned = malloc(LINES_MAX * sizeof *turned);
        if (!turned) {
            scan_text_free(lines);
            return CORDON_ENOMEM;
        }
        for (size_t i = 0; i < LINES_MAX; i++)
            turned[i] = lines->lines[(total + i) % LINES_MAX];
        free(lines->lines);
        lines->lines = turned;
    }
    return 0;
}

void scan_text_free(struct scan_text *lines)
{
    free(lines->bytes);
    free(lines->lines);
    *lines = (struct scan_text){0};
}

void finding_free(struct finding *finding)
{
    free(finding->type);
    free(finding->message);
    free(finding->file);
}

/* A line that a row matches, with its groups. */
struct hit {
    size_t line;
    regmatch_t groups[GROUPS_MAX];
    bool known_file;
};

static char *group_text(const struct scan_text *lines, const struct hit *hit, int group)
{
    if (group <= 0 || group >= GROUPS_MAX || hit->groups[group].rm_so < 0)
        return NULL;
    const regmatch_t *span = &hit->groups[group];
    return strndup(lines->lines[hit->line] + span->rm_so, (size_t)(span->rm_eo - span->rm_so));
}

/* As the caller named it: without the work directory. */
static char *plain_file(char *file)
{
    static const char *const prefixes[] = {"file://", "/work/", "./"};
    if (!file)
        return NULL;
    size_t skip = 0;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncmp(file + skip, prefixes[i], strlen(prefixes[i])) == 0)
            skip += strlen(prefixes[i]);
    memmove(file, file + skip, strlen(file + skip) + 1);
    return file;
}

static bool is_known(const struct explain_input *input, const char *file)
{
    size_t length;
    return input->source && file && input->source(input->context, file, &length);
}

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* Once a row has told the type, later rows are about the place: the nearest line wins, since a log may hold several
 * errors. Lines about the program's own files win over those of its libraries. */
static bool is_better(const struct hit *hit, const struct hit *best, const struct manifest_error *row,
                      const struct finding *finding)
{
    if (hit->known_file != best->known_file)
        return hit->known_file;
    if (finding->found)
        return distance(hit->line, finding->anchor) < distance(best->line, finding->anchor);
    return !row->last; /* `hit` is the earlier line of the two */
}

static bool best_hit(const regex_t *regex, const struct scan_text *lines, const struct manifest_error *row,
                     const struct explain_input *input, const struct finding *finding, uint64_t deadline,
                     struct hit *best)
{
    bool any = false;
    /* From the end: when time runs out, the newest lines were seen. */
    for (size_t i = lines->count; i-- > 0 && clock_us() < deadline;) {
        struct hit hit = {.line = i};
        if (regexec(regex, lines->lines[i], GROUPS_MAX, hit.groups, 0) != 0)
            continue;
        if (row->file > 0) {
            auto_free char *file = plain_file(group_text(lines, &hit, row->file));
            hit.known_file = is_known(input, file);
        }
        if (!any || is_better(&hit, best, row, finding))
            *best = hit;
        any = true;
        if (row->last && !finding->found && (row->file == 0 || hit.known_file))
            break;
    }
    return any;
}

static void fill_text(char **field, char *text)
{
    if (*field || !text || !text[0])
        free(text);
    else
        *field = text;
}

static void fill_number(long *field, char *text)
{
    long number = text ? strtol(text, NULL, 10) : 0;
    if (*field == 0 && number > 0 && number < NUMBER_MAX)
        *field = number;
    free(text);
}

static void apply(const struct scan_text *lines, const struct manifest_error *row, const struct hit *hit,
                  struct finding *finding)
{
    if (row->type || row->message || row->fixed_type) {
        if (!finding->found) {
            finding->found = true;
            finding->anchor = hit->line;
        }
        fill_text(&finding->type, group_text(lines, hit, row->type));
        if (row->fixed_type)
            fill_text(&finding->type, strdup(row->fixed_type));
        if (row->message == -1 && hit->line + 1 < lines->count)
            fill_text(&finding->message, strdup(lines->lines[hit->line + 1]));
        fill_text(&finding->message, group_text(lines, hit, row->message));
        if (!finding->category)
            finding->category = row->category;
    }
    /* File, line and column come from one line or not at all. */
    if (row->file && !finding->file) {
        fill_text(&finding->file, plain_file(group_text(lines, hit, row->file)));
        fill_number(&finding->line, group_text(lines, hit, row->line));
        fill_number(&finding->column, group_text(lines, hit, row->column));
    }
}

int scan_find(const struct scan_text *lines, const struct manifest_notes *notes, const struct explain_input *input,
              struct finding *finding)
{
    uint64_t deadline = clock_us() + BUDGET_US;
    for (unsigned i = 0; i < notes->errors_count; i++) {
        const struct manifest_error *row = &notes->errors[i];
        bool tells_place = row->file && !finding->file;
        bool tells_error =
            (row->type && !finding->type) || (row->message && !finding->message) || (row->fixed_type && !finding->type);
        regex_t regex;
        /* A row with a broken expression is skipped: advice is never worth an error. */
        if ((!tells_place && !tells_error) || regcomp(&regex, row->match, REG_EXTENDED) != 0)
            continue;
        struct hit hit = {0};
        if (best_hit(&regex, lines, row, input, finding, deadline, &hit))
            apply(lines, row, &hit, finding);
        regfree(&regex);
    }
    return 0;
}
