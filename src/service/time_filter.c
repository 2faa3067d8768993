/* Owns how points in time are read. Pure. */
#include "service/time_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "plan/word.h"

#define DAY 86400

static const struct {
    char unit;
    int64_t seconds;
} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', DAY}, {'w', 7 * DAY}, {0, 0}};

static bool read_age(const char *text, int64_t *seconds)
{
    size_t digits = strspn(text, "0123456789"), unit = 0;
    if (!digits || digits > 9 || !text[digits] || text[digits + 1])
        return false;
    while (units[unit].unit && units[unit].unit != text[digits])
        unit++;
    *seconds = strtoll(text, NULL, 10) * units[unit].seconds;
    return units[unit].unit;
}

/* The rest of a text must be one of these. */
static bool is_end(const char *rest)
{
    return !*rest || !strcmp(rest, "Z");
}

/* The calendar decides: the 31st of February is none. */
static bool read_date(const char *text, bool end, int64_t *seconds)
{
    struct tm date = {0}, same;
    int date_end = 0, minute_end = 0, second_end = 0;
    if (sscanf(text, "%4d-%2d-%2d%n%*1[T ]%2d:%2d%n:%2d%n", &date.tm_year, &date.tm_mon, &date.tm_mday, &date_end,
               &date.tm_hour, &date.tm_min, &minute_end, &date.tm_sec, &second_end) < 3 ||
        date_end != 10)
        return false;
    int last = second_end ? second_end : minute_end ? minute_end : date_end;
    if (!is_end(text + last) || date.tm_hour > 23 || date.tm_min > 59 || date.tm_sec > 60)
        return false;
    date.tm_year -= 1900;
    date.tm_mon -= 1;
    same = date;
    *seconds = timegm(&date);
    if (same.tm_mday != date.tm_mday || same.tm_mon != date.tm_mon || same.tm_year != date.tm_year)
        return false;
    *seconds += end && last == date_end ? DAY : 0;
    return true;
}

int time_filter(const char *text, bool end, int64_t now_s, char time[TIME_FILTER_BYTES], cordon_error *err)
{
    int64_t seconds = 0;
    struct tm parts;
    if (read_age(text, &seconds))
        seconds = now_s - seconds;
    else if (!read_date(text, end, &seconds)) {
        error_set(err, CORDON_EINVAL, "usage", "'%s' is no time", word_show(text).text);
        return error_hint(err, "write an age such as 90s, 30m, 2h, 3d or 1w, or a date such as 2026-11-15 or "
                               "2026-11-15T15:27 (UTC)");
    }
    time_t at = (time_t)seconds;
    if (!gmtime_r(&at, &parts) || strftime(time, TIME_FILTER_BYTES, "%Y-%m-%dT%H:%M:%S.000Z", &parts) == 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%s' is out of range", word_show(text).text);
    return 0;
}
