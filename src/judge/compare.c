/* Owns the rules of comparison and the words for a difference. Called by the judge for each case, on the bytes as the
 * program wrote them. Places are told as an editor shows them: lines and characters from 1. */
#include "judge/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/utf8.h"

#define QUOTED_MAX 60
/* What stands before the first difference in a long line: even as \\xNN it leaves room for the difference itself. */
#define BEFORE_MAX 12
/* No number that a program prints on purpose is longer. */
#define NUMBER_MAX 400

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* How many bytes of a UTF-8 character stand here, or 0 where there is none that may be shown. */
static size_t shown_length(const char *at, size_t left)
{
    unsigned char first = (unsigned char)*at;
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    bool is_control = first == 0xc2 && left > 1 && (unsigned char)at[1] < 0xa0;
    return length <= left && !is_control && utf8_valid(at, length) ? length : 0;
}

static void quote_one(struct buf *line, unsigned char byte)
{
    static const char named[] = "\a\b\t\n\v\f\r", letters[] = "abtnvfr";
    const char *found = byte ? strchr(named, byte) : NULL;
    if (found)
        buf_printf(line, "\\%c", letters[found - named]);
    else
        buf_printf(line, "\\x%02x", byte);
}

void compare_quote(struct buf *line, const char *bytes, size_t length)
{
    size_t at = 0, start = line->length;
    buf_puts(line, "\"");
    while (at < length && line->length - start < QUOTED_MAX && !line->failed) {
        size_t shown = shown_length(bytes + at, length - at);
        if (shown)
            buf_append(line, bytes + at, shown);
        else
            quote_one(line, (unsigned char)bytes[at]);
        at += shown ? shown : 1;
    }
    buf_puts(line, at < length ? "…\"" : "\"");
}

struct place {
    size_t line, column, line_start;
};

static struct place place_of(struct slice text, size_t offset)
{
    struct place place = {.line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < text.length; i++)
        if (text.data[i] == '\n') {
            place.line++;
            place.line_start = i + 1;
        }
    for (size_t i = place.line_start; i < offset && i < text.length; i++)
        place.column += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return place;
}

static void tell_place(struct buf *reason, struct place place)
{
    buf_printf(reason, "line %zu, column %zu: ", place.line, place.column);
}

/* Its line from shortly before the offset on; `with_end` takes the line's end with it, where that is what differs. */
static void tell_line(struct buf *reason, struct slice text, size_t offset, bool with_end)
{
    if (offset >= text.length) {
        buf_puts(reason, "the end of the output");
        return;
    }
    size_t start = offset, end = offset;
    while (start > 0 && offset - start < BEFORE_MAX && text.data[start - 1] != '\n')
        start--;
    while (start < offset && ((unsigned char)text.data[start] & 0xc0) == 0x80)
        start++;
    const char *newline = memchr(text.data + offset, '\n', text.length - offset);
    end = newline ? (size_t)(newline - text.data) + with_end : text.length;
    compare_quote(reason, text.data + start, end - start);
}

static void tell_difference(struct buf *reason, struct slice expected, struct slice got, size_t in_expected,
                            size_t in_got, bool with_end)
{
    if (!reason)
        return;
    tell_place(reason, place_of(got, in_got));
    buf_puts(reason, "expected ");
    tell_line(reason, expected, in_expected, with_end);
    buf_puts(reason, ", got ");
    tell_line(reason, got, in_got, with_end);
}

static size_t common_prefix(struct slice a, struct slice b)
{
    size_t least = a.length < b.length ? a.length : b.length, i = 0;
    while (i < least && a.data[i] == b.data[i])
        i++;
    return i;
}

static bool compare_exact(struct slice expected, struct slice got, struct buf *reason)
{
    size_t same = common_prefix(expected, got);
    if (same == expected.length && same == got.length)
        return true;
    tell_difference(reason, expected, got, same, same, true);
    return false;
}

static size_t trimmed(const char *data, size_t length)
{
    while (length && is_space(data[length - 1]))
        length--;
    return length;
}

/* The next line from *at on, without its end; *at moves behind it. */
static struct slice next_line(struct slice text, size_t *at)
{
    const char *start = text.data + *at;
    const char *newline = memchr(start, '\n', text.length - *at);
    size_t length = newline ? (size_t)(newline - start) : text.length - *at;
    *at += length + (newline ? 1 : 0);
    return (struct slice){start, trimmed(start, length)};
}

static void tell_lines(struct buf *reason, struct slice expected, struct slice got, size_t number)
{
    size_t column = 1, same = common_prefix(expected, got);
    if (!reason)
        return;
    for (size_t i = 0; i < same; i++)
        column += ((unsigned char)got.data[i] & 0xc0) != 0x80;
    tell_place(reason, (struct place){.line = number, .column = column});
    size_t skip = same > BEFORE_MAX ? same - BEFORE_MAX : 0;
    while (skip < same && ((unsigned char)got.data[skip] & 0xc0) == 0x80)
        skip++;
    buf_puts(reason, "expected ");
    compare_quote(reason, expected.data + skip, expected.length - skip);
    buf_puts(reason, ", got ");
    compare_quote(reason, got.data + skip, got.length - skip);
}

static bool compare_trim(struct slice expected, struct slice got, struct buf *reason)
{
    expected.length = trimmed(expected.data, expected.length);
    got.length = trimmed(got.data, got.length);
    size_t at_expected = 0, at_got = 0;
    for (size_t number = 1; at_expected < expected.length || at_got < got.length; number++) {
        /* Both were cut behind their last character, so whoever is at the end has no further line. */
        if (at_expected >= expected.length || at_got >= got.length) {
            bool missing = at_got >= got.length;
            struct slice line = missing ? next_line(expected, &at_expected) : next_line(got, &at_got);
            if (reason) {
                buf_printf(reason, "line %zu, column 1: expected ", number);
                missing ? compare_quote(reason, line.data, line.length) : buf_puts(reason, "the end of the output");
                buf_puts(reason, ", got ");
                missing ? buf_puts(reason, "the end of the output") : compare_quote(reason, line.data, line.length);
            }
            return false;
        }
        struct slice a = next_line(expected, &at_expected), b = next_line(got, &at_got);
        if (a.length != b.length || memcmp(a.data, b.data, a.length) != 0) {
            tell_lines(reason, a, b, number);
            return false;
        }
    }
    return true;
}

/* False at the end of the text. */
static bool next_token(struct slice text, size_t *at, struct slice *token)
{
    while (*at < text.length && is_space(text.data[*at]))
        ++*at;
    size_t start = *at;
    while (*at < text.length && !is_space(text.data[*at]))
        ++*at;
    *token = (struct slice){text.data + start, *at - start};
    return *at > start;
}

static bool read_number(struct slice token, double *number)
{
    char text[NUMBER_MAX + 1], *end;
    if (!token.length || token.length > NUMBER_MAX)
        return false;
    memcpy(text, token.data, token.length);
    text[token.length] = '\0';
    /* strtod() also reads hexadecimal, which no comparison of decimals means. */
    if (strlen(text) != token.length || strpbrk(text, "xX(") || is_space(*text))
        return false;
    *number = strtod(text, &end);
    return !*end;
}

static bool is_near(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    double distance = fabs(a - b);
    return distance <= tolerance || distance <= tolerance * fabs(a);
}

static bool tokens_equal(struct slice a, struct slice b, bool is_float, double tolerance)
{
    double x, y;
    if (a.length == b.length && !memcmp(a.data, b.data, a.length))
        return true;
    return is_float && read_number(a, &x) && read_number(b, &y) && is_near(x, y, tolerance);
}

static void tell_token(struct buf *reason, bool there, struct slice token)
{
    if (there)
        compare_quote(reason, token.data, token.length);
    else
        buf_puts(reason, "the end of the output");
}

static bool compare_tokens(bool is_float, double tolerance, struct slice expected, struct slice got, struct buf *reason)
{
    size_t at_expected = 0, at_got = 0;
    struct slice a, b;
    for (size_t number = 1;; number++) {
        bool has_a = next_token(expected, &at_expected, &a), has_b = next_token(got, &at_got, &b);
        if (!has_a && !has_b)
            return true;
        if (has_a && has_b && tokens_equal(a, b, is_float, tolerance))
            continue;
        if (reason) {
            struct place place = place_of(got, (size_t)(b.data - got.data));
            buf_printf(reason, "line %zu, column %zu (token %zu): expected ", place.line, place.column, number);
            tell_token(reason, has_a, a);
            buf_puts(reason, ", got ");
            tell_token(reason, has_b, b);
            if (is_float && has_a && has_b)
                buf_printf(reason, " (tolerance %g)", tolerance);
        }
        return false;
    }
}

bool compare_output(enum match match, double tolerance, struct slice expected, struct slice got, struct buf *reason)
{
    if (match == MATCH_EXACT)
        return compare_exact(expected, got, reason);
    if (match == MATCH_TRIM)
        return compare_trim(expected, got, reason);
    return compare_tokens(match == MATCH_FLOAT, tolerance, expected, got, reason);
}
