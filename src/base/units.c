/* Owns how quantities are read and written. Pure. */
#include "base/units.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *suffix;
    int64_t factor;
};

static const struct unit byte_units[] = {{"", 1},          {"b", 1},        {"k", 1 << 10},   {"kb", 1 << 10},
                                         {"kib", 1 << 10}, {"m", 1 << 20},  {"mb", 1 << 20},  {"mib", 1 << 20},
                                         {"g", 1 << 30},   {"gb", 1 << 30}, {"gib", 1 << 30}, {"t", INT64_C(1) << 40},
                                         {NULL, 0}};
static const struct unit time_units[] = {
    {"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"min", 60 * 1000}, {"h", 3600 * 1000}, {NULL, 0}};
static const struct unit count_units[] = {{"", 1}, {"k", 1000}, {NULL, 0}};

/* Digits with at most one decimal point, then a suffix of the table. The value is kept in thousandths of the number, so
 * that "1.5g" is exact enough and nothing depends on the locale. */
static int parse(const char *text, const struct unit *units, int64_t scale, const char *bad_unit, int64_t *value,
                 const char **why)
{
    while (isspace((unsigned char)*text))
        text++;
    if (!*text) {
        *why = "is empty";
        return -1;
    }
    if (*text == '-') {
        *why = "is negative";
        return -1;
    }
    if (*text == '+')
        text++;
    if (!isdigit((unsigned char)*text)) {
        *why = "is not a number";
        return -1;
    }
    int64_t whole = 0, milli = 0, place = 100;
    for (; isdigit((unsigned char)*text); text++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *text - '0', &whole))
            goto overflow;
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++, place /= 10)
            milli += (*text - '0') * place;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    while (length && isspace((unsigned char)*text))
        text++, length--;
    for (const struct unit *unit = units; unit->suffix; unit++) {
        if (strlen(unit->suffix) != length || strncasecmp(unit->suffix, text, length) != 0)
            continue;
        int64_t factor, fraction;
        if (__builtin_mul_overflow(unit->factor, scale, &factor) || __builtin_mul_overflow(whole, factor, value) ||
            __builtin_mul_overflow(milli, factor, &fraction) || __builtin_add_overflow(*value, fraction / 1000, value))
            goto overflow;
        return 0;
    }
    *why = bad_unit;
    return -1;
overflow:
    *why = "is too large";
    return -1;
}

int units_parse_bytes(const char *text, int64_t *bytes, const char **why)
{
    return parse(text, byte_units, 1, "has an unknown unit (expected bytes, or k, m, g: 512m)", bytes, why);
}

int units_parse_ms(const char *text, int64_t *ms, const char **why)
{
    return parse(text, time_units, 1, "has an unknown unit (expected milliseconds, or ms, s, m, h: 5s)", ms, why);
}

int units_parse_count(const char *text, int64_t *count, const char **why)
{
    return parse(text, count_units, 1, "has an unknown unit (expected a whole number, or k for thousands)", count, why);
}

int units_parse_milli(const char *text, int64_t *milli, const char **why)
{
    static const struct unit none[] = {{"", 1}, {NULL, 0}};
    return parse(text, none, 1000, "has an unknown unit (expected a number of processors: 0.5)", milli, why);
}

static char *format_scaled(int64_t value, int64_t unit, const char *name, char *text, unsigned size)
{
    if (value % unit == 0)
        snprintf(text, size, "%lld %s", (long long)(value / unit), name);
    else
        snprintf(text, size, "%.2f %s", (double)value / (double)unit, name);
    return text;
}

char *units_format_bytes(int64_t bytes, char *text, unsigned size)
{
    if (bytes >= 1 << 30)
        return format_scaled(bytes, 1 << 30, "GiB", text, size);
    if (bytes >= 1 << 20)
        return format_scaled(bytes, 1 << 20, "MiB", text, size);
    if (bytes >= 1 << 10)
        return format_scaled(bytes, 1 << 10, "KiB", text, size);
    return format_scaled(bytes, 1, "bytes", text, size);
}

char *units_format_ms(int64_t ms, char *text, unsigned size)
{
    if (ms >= 1000)
        return format_scaled(ms, 1000, "s", text, size);
    return format_scaled(ms, 1, "ms", text, size);
}
