/* Owns the way from option tables to getopt_long(3) and to the text of --help. Knows no option by name but --help.
 * Called by the commands; prints nothing but help. */
#include "cli/options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "cli/terminal.h"

/* Above every character, so that getopt's return value tells long options from short ones. */
#define ROW_BASE   256
#define HELP_INDEX (ROW_BASE + OPTIONS_MAX)

struct parser {
    struct option longs[OPTIONS_MAX + 2];
    char shorts[2 * OPTIONS_MAX + 8];
};

static void parser_fill(struct parser *parser, const struct usage *usage)
{
    *parser = (struct parser){0};
    struct option *next = parser->longs;
    /* '+' stops at the first word, ':' makes a missing argument tell itself apart. */
    char *letter = stpcpy(parser->shorts, usage->anywhere ? ":h" : "+:h");
    for (size_t i = 0; i < usage->row_count && i < OPTIONS_MAX; i++) {
        const struct option_row *row = &usage->rows[i];
        if (!row->long_name)
            continue;
        *next++ = (struct option){.name = row->long_name,
                                  .has_arg = row->argument ? required_argument : no_argument,
                                  .val = ROW_BASE + (int)i};
        if (row->short_name) {
            *letter++ = row->short_name;
            if (row->argument)
                *letter++ = ':';
        }
    }
    *next = (struct option){.name = "help", .has_arg = no_argument, .val = HELP_INDEX};
}

static const struct option_row *find_row(const struct usage *usage, int got)
{
    if (got >= ROW_BASE && got < HELP_INDEX)
        return &usage->rows[got - ROW_BASE];
    for (size_t i = 0; i < usage->row_count; i++)
        if (usage->rows[i].short_name && usage->rows[i].short_name == got)
            return &usage->rows[i];
    return NULL;
}

static int unknown_option(const struct usage *usage, const char *word, int letter, cordon_error *err)
{
    const struct option_row *row = find_row(usage, letter);
    if (row)
        return error_set(err, CORDON_EINVAL, "usage", "--%s takes no argument", row->long_name);
    if (letter)
        return error_set(err, CORDON_EINVAL, "usage", "unknown option -%c", letter);
    const char *names[OPTIONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < usage->row_count && i < OPTIONS_MAX; i++)
        if (usage->rows[i].long_name)
            names[count++] = usage->rows[i].long_name;
    int length = (int)strcspn(word, "=");
    auto_free char *name = strndup(word, (size_t)length);
    const char *meant = name ? options_nearest(name + strspn(name, "-"), names, count) : NULL;
    error_set(err, CORDON_EINVAL, "usage", "unknown option %.*s", length, word);
    return meant ? error_hint(err, "did you mean --%s?", meant) : CORDON_EINVAL;
}

/* What a handler or a setter of the library said, with the option that caused it in front. */
static void name_option(const struct option_row *row, cordon_error *err)
{
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "--%s: %.340s", row->long_name, text);
}

/* The row of an option that stands alone: "-l" or "--language". */
static const struct option_row *exact_option(const struct usage *usage, const char *word)
{
    bool is_long = !strncmp(word, "--", 2) && word[2], is_short = word[0] == '-' && word[1] && !word[2];
    for (size_t i = 0; (is_long || is_short) && i < usage->row_count; i++) {
        const struct option_row *row = &usage->rows[i];
        if (row->long_name && (is_long ? !strcmp(row->long_name, word + 2) : row->short_name == word[1]))
            return row;
    }
    return NULL;
}

/* A value that was left out takes the next option for a value. */
static int swallowed_option(const struct option_row *row, const char *value, cordon_error *err)
{
    error_set(err, CORDON_EINVAL, "usage", "--%s needs %s, but the option %s follows", row->long_name, row->argument,
              value);
    return error_hint(err, "if that is the value, write --%s=%s", row->long_name, value);
}

static int handle_one(const struct usage *usage, int got, const char *word, void *context, cordon_error *err)
{
    if (got == '?')
        return unknown_option(usage, word, optopt, err);
    const struct option_row *row = find_row(usage, got == ':' ? optopt : got);
    if (!row)
        return error_set(err, CORDON_EINVAL, "usage", "unknown option %s", word);
    if (got == ':')
        return error_set(err, CORDON_EINVAL, "usage", "--%s needs %s", row->long_name, row->argument);
    bool stands_alone = row->argument && optarg == word;
    if (stands_alone && exact_option(usage, optarg))
        return swallowed_option(row, optarg, err);
    int code = row->handle(context, row, optarg, err);
    if (code < 0)
        name_option(row, err);
    return code;
}

int options_parse(const struct usage *usage, int argc, char **argv, void *context, int *first, cordon_error *err)
{
    struct parser parser;
    parser_fill(&parser, usage);
    cordon_error each = {0};
    int result = 0;
    opterr = 0;
    optind = 0; /* glibc: start afresh */
    for (;;) {
        int got = getopt_long(argc, argv, parser.shorts, parser.longs, NULL);
        if (got == -1)
            break;
        if (got == 'h' || got == HELP_INDEX) {
            options_print_help(usage);
            return OPTIONS_HELP;
        }
        int code = handle_one(usage, got, argv[optind - 1], context, &each);
        if (code < 0 && result == 0) {
            result = code;
            *err = each;
        }
    }
    *first = optind;
    return result;
}

int options_no_words(int argc, char **argv, int first, cordon_error *err)
{
    if (first >= argc)
        return 0;
    return error_set(err, CORDON_EINVAL, "usage", "unexpected argument '%s'", argv[first]);
}

int option_set_flag(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row, (void)value, (void)err;
    *(bool *)context = true;
    return 0;
}

#define HELP_COLUMN 28

static void print_row(const struct option_row *row)
{
    char letter[8] = "    ", left[64];
    if (row->short_name)
        snprintf(letter, sizeof letter, "-%c, ", row->short_name);
    int width = snprintf(left, sizeof left, "  %s--%s%s%s", letter, row->long_name, row->argument ? " " : "",
                         row->argument ? row->argument : "");
    if (width >= HELP_COLUMN)
        printf("%s\n%*s", left, HELP_COLUMN, "");
    else
        printf("%-*s", HELP_COLUMN, left);
    for (const char *line = row->help;;) {
        int length = (int)strcspn(line, "\n");
        printf("%.*s\n", length, line);
        if (!line[length])
            break;
        line += length + 1;
        printf("%*s", HELP_COLUMN, "");
    }
}

void options_print_help(const struct usage *usage)
{
    static const struct option_row help = {"help", 'h', NULL, "show this text", NULL, NULL};
    terminal_tint(stdout, TINT_BOLD, "Usage: ");
    printf("%s\n\n%s\n", usage->synopsis, usage->about);
    if (!usage->row_count || usage->rows[0].long_name)
        printf("\n");
    for (size_t i = 0; i < usage->row_count; i++) {
        if (usage->rows[i].long_name) {
            print_row(&usage->rows[i]);
            continue;
        }
        printf("\n");
        terminal_tint(stdout, TINT_BOLD, usage->rows[i].help);
        printf("\n");
    }
    print_row(&help);
    if (usage->closing)
        printf("\n%s\n", usage->closing);
}

bool options_find(const struct usage *usage, const char *word)
{
    auto_free char *name = strndup(word, strcspn(word, "="));
    return name && exact_option(usage, !strncmp(word, "--", 2) ? name : word);
}

/* Zero and numbers of no clock are errors of their own. */
#define TIME_DIGITS 12

int option_check_time(const char *value, cordon_error *err)
{
    int digits = (int)strspn(value, "0123456789.");
    bool is_bare = digits && digits <= TIME_DIGITS && !value[digits + (int)strspn(value + digits, " ")];
    if (!is_bare || strspn(value, "0.") == (size_t)digits)
        return 0;
    error_set(err, CORDON_EINVAL, "usage", "%.*s has no unit", digits, value);
    return error_hint(err, "write %.*ss for seconds or %.*sms for milliseconds", digits, value, digits, value);
}

const char *options_nearest(const char *word, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    unsigned best = NEAREST_MAX + 1;
    for (size_t i = 0; i < count; i++) {
        unsigned edits = nearest_distance(word, names[i]);
        if (edits < best && edits < strlen(names[i])) {
            best = edits;
            nearest = names[i];
        }
    }
    return nearest;
}
