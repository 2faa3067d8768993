/* Paths, numbers and Accept headers, as clients send them. Called by the handlers, and fuzzed. */
#include "api/match.h"

#include <string.h>
#include <strings.h>

/* The id of a path that has one, checked. */
static bool take_id(const char **path, char id[ID_BYTES + 1])
{
    size_t length = strspn(*path, "0123456789abcdef");
    if (length != ID_BYTES)
        return false;
    memcpy(id, *path, length);
    id[length] = '\0';
    *path += length;
    return true;
}

bool match_path(const char *pattern, const char *path, char id[ID_BYTES + 1])
{
    while (*pattern) {
        if (strncmp(pattern, "{id}", 4) == 0) {
            if (!take_id(&path, id))
                return false;
            pattern += 4;
        } else if (*pattern++ != *path++)
            return false;
    }
    return !*path;
}

bool match_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    uint64_t sum = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        unsigned digit = (unsigned)(*text - '0');
        if (digit > most || sum > (most - digit) / 10)
            return false;
        sum = 10 * sum + digit;
    }
    *value = sum;
    return sum >= least;
}

/* One media range of the header: its name, and its weight in thousandths. */
struct range {
    const char *name;
    size_t length;
    unsigned weight;
};

static unsigned weight_of(const char *text, const char *end)
{
    unsigned weight = 0, unit = 1000;
    for (; text < end && unit; text++)
        if (*text >= '0' && *text <= '9') {
            weight += (unsigned)(*text - '0') * unit;
            unit /= 10;
        } else if (*text != '.')
            break;
    return weight > 1000 ? 1000 : weight;
}

static unsigned find_weight(const char *at, const char *end)
{
    while (at < end && (at = memchr(at, ';', (size_t)(end - at)))) {
        at += 1 + strspn(at + 1, " \t");
        if (end - at >= 2 && (*at == 'q' || *at == 'Q') && at[1] == '=')
            return weight_of(at + 2, end);
    }
    return 1000;
}

static const char *next_range(const char *at, struct range *range)
{
    at += strspn(at, " \t,");
    if (!*at)
        return NULL;
    const char *end = at + strcspn(at, ",");
    *range = (struct range){at, strcspn(at, ";, \t"), find_weight(at, end)};
    return end;
}

/* 0: not at all; else the more, the more exactly. */
static int fits(const struct range *range, const char *type)
{
    size_t main = strcspn(type, "/") + 1;
    if (range->length == 3 && strncmp(range->name, "*/*", 3) == 0)
        return 1;
    if (range->length == main + 1 && range->name[main] == '*' && strncasecmp(range->name, type, main) == 0)
        return 2;
    return range->length == strlen(type) && strncasecmp(range->name, type, range->length) == 0 ? 3 : 0;
}

/* What the range that names the type most exactly gives it; *place is where that stands. */
static unsigned weigh(const char *accept, const char *type, size_t *place)
{
    struct range range;
    int best = 0;
    unsigned weight = 0;
    for (const char *at = accept; (at = next_range(at, &range));)
        if (fits(&range, type) > best) {
            best = fits(&range, type);
            weight = range.weight;
            *place = (size_t)(range.name - accept);
        }
    return weight;
}

size_t match_accept(const char *accept, const char *const *types, size_t count)
{
    size_t chosen = 0, first = 0;
    unsigned most = 0;
    for (size_t i = 0; accept && i < count; i++) {
        size_t place = 0;
        unsigned weight = weigh(accept, types[i], &place);
        if (weight > most || (weight && weight == most && place < first)) {
            chosen = i;
            most = weight;
            first = place;
        }
    }
    return chosen;
}
