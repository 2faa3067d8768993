/* Globs over relative paths, on bytes: independent of the locale, and of bounded cost for any pattern and any name. */
#ifndef OUTPUT_GLOB_H
#define OUTPUT_GLOB_H

#include <stdbool.h>
#include <stdint.h>

/* More components than this never match. */
#define GLOB_COMPONENTS_MAX 63

struct glob_match {
    bool path;    /* the path itself matches */
    bool beneath; /* something beneath it, were it a directory, could */
};

/* `*`, `?`, `[a-z]`, `[!a-z]` and `\` within a component, as in fnmatch(3) with FNM_PATHNAME; a component `**` stands
 * for any number of directories, and at the end for everything beneath. */
struct glob_match glob_match(const char *glob, const char *path);
/* The same at a cost that is taken off *steps, about a byte compared each. When there are too few left, *steps is 0 and
 * the answer means nothing. */
struct glob_match glob_match_within(const char *glob, const char *path, uint64_t *steps);
/* False when the glob can match one path only: itself. */
bool glob_has_magic(const char *glob);

#endif
