/* Owns glob matching. Pure. Called while collecting, with patterns of the caller and names chosen by hostile code: both
 * are walked without recursion, and no choice is tried more than once. */
#include "output/glob.h"

#include <stdint.h>
#include <string.h>

struct part {
    const char *text;
    size_t length;
};

static struct part next_part(const char **path)
{
    struct part part = {*path, strcspn(*path, "/")};
    *path += part.length + ((*path)[part.length] == '/');
    return part;
}

static bool is_any_depth(struct part part)
{
    return part.length == 2 && part.text[0] == '*' && part.text[1] == '*';
}

/* One bracket expression at pattern[*at] == '['; moves past it. Without a closing bracket it is an ordinary '['. */
static bool match_bracket(struct part pattern, size_t *at, unsigned char c)
{
    size_t i = *at + 1;
    bool negated = i < pattern.length && (pattern.text[i] == '!' || pattern.text[i] == '^');
    bool found = false;
    i += negated;
    for (size_t first = i; i < pattern.length; i++) {
        unsigned char low = (unsigned char)pattern.text[i];
        if (low == ']' && i > first) {
            *at = i + 1;
            return found != negated;
        }
        if (low == '\\' && i + 1 < pattern.length)
            low = (unsigned char)pattern.text[++i];
        unsigned char high = low;
        if (i + 2 < pattern.length && pattern.text[i + 1] == '-' && pattern.text[i + 2] != ']') {
            i += 2;
            if (pattern.text[i] == '\\' && i + 1 < pattern.length)
                i++;
            high = (unsigned char)pattern.text[i];
        }
        found = found || (c >= low && c <= high);
    }
    ++*at;
    return c == '[';
}

/* One pattern item other than `*` against one byte; moves past the item. */
static bool match_one(struct part pattern, size_t *at, unsigned char c)
{
    char item = pattern.text[*at];
    if (item == '[')
        return match_bracket(pattern, at, c);
    if (item == '\\' && *at + 1 < pattern.length)
        ++*at;
    return pattern.text[(*at)++] == (char)c || item == '?';
}

static bool spend(uint64_t *steps, uint64_t count)
{
    *steps -= count < *steps ? count : *steps;
    return *steps;
}

/* Only the last `*` ever needs to be tried longer: what an earlier one matched stays right. */
static bool match_part(struct part pattern, struct part name, uint64_t *steps)
{
    size_t p = 0, n = 0, star = SIZE_MAX, star_name = 0;
    while (n < name.length) {
        size_t before = p;
        if (p < pattern.length && pattern.text[p] == '*') {
            star = ++p;
            star_name = n;
            continue;
        }
        bool same = p < pattern.length && match_one(pattern, &p, (unsigned char)name.text[n]);
        if (!spend(steps, 1 + p - before))
            return false;
        if (same) {
            n++;
            continue;
        }
        if (star == SIZE_MAX)
            return false;
        p = star;
        n = ++star_name;
    }
    while (p < pattern.length && pattern.text[p] == '*')
        p++;
    return p == pattern.length;
}

/* A set of positions in the pattern, advanced by one path component at a time; `**` keeps its own position. */
struct glob_match glob_match_within(const char *glob, const char *path, uint64_t *steps)
{
    struct part parts[GLOB_COMPONENTS_MAX];
    unsigned count = 0;
    for (const char *at = glob; *at; count++) {
        if (count == GLOB_COMPONENTS_MAX)
            return (struct glob_match){false, false};
        parts[count] = next_part(&at);
    }
    uint64_t live = 1, end = UINT64_C(1) << count;
    for (const char *at = path;;) {
        /* `**` may stand for no directory at all, but not for the file that ends a path. */
        for (unsigned i = 0; i + 1 < count; i++)
            if (live >> i & 1 && is_any_depth(parts[i]))
                live |= UINT64_C(2) << i;
        if (!*at)
            break;
        struct part name = next_part(&at);
        uint64_t next = 0;
        spend(steps, count);
        for (unsigned i = 0; i < count; i++) {
            if (!(live >> i & 1))
                continue;
            if (is_any_depth(parts[i]))
                next |= UINT64_C(1) << i | (i + 1 == count ? end : 0);
            else if (match_part(parts[i], name, steps))
                next |= UINT64_C(2) << i;
        }
        live = next;
    }
    return (struct glob_match){(live & end) != 0, (live & (end - 1)) != 0};
}

struct glob_match glob_match(const char *glob, const char *path)
{
    uint64_t steps = UINT64_MAX;
    return glob_match_within(glob, path, &steps);
}

bool glob_has_magic(const char *glob)
{
    return strpbrk(glob, "*?[\\") != NULL;
}
