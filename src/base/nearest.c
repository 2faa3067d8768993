/* Owns the edit distance. Pure; called wherever an unknown name may be a slip. */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define LENGTH_MAX 40

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned nearest_distance(const char *a, const char *b)
{
    unsigned rows[3][LENGTH_MAX + 1]; /* the swap rule looks two rows back */
    size_t height = strnlen(a, LENGTH_MAX), width = strnlen(b, LENGTH_MAX);
    for (size_t y = 0; y <= height; y++) {
        unsigned *row = rows[y % 3], *above = rows[(y + 2) % 3], *second = rows[(y + 1) % 3];
        row[0] = (unsigned)y;
        for (size_t x = 1; x <= width; x++) {
            if (y == 0) {
                row[x] = (unsigned)x;
                continue;
            }
            row[x] = least(least(row[x - 1], above[x]) + 1, above[x - 1] + !same(a[y - 1], b[x - 1]));
            if (y > 1 && x > 1 && same(a[y - 1], b[x - 2]) && same(a[y - 2], b[x - 1]))
                row[x] = least(row[x], second[x - 2] + 1);
        }
    }
    return rows[height % 3][width];
}
