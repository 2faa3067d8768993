/* Where the library keeps what is dear to find out again: a directory of the user's own. Nothing in it is needed, and
 * nothing that lies there is believed without a check. */
#ifndef ENGINE_CACHE_PLACE_H
#define ENGINE_CACHE_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

/* `cordon` in the user's cache directory, or `name` in that; made if need be. A descriptor, or -1. */
int cache_place_open(const char *name);
/* The directory at `path`, or `name` beneath the open directory `parent`; made if need be. A descriptor, or -1 when it
 * cannot be had or is not the user's alone to write. */
int cache_place_open_path(const char *path);
int cache_place_open_at(int parent, const char *name);
/* Whether what was found there is this user's and nobody else's to write. */
bool cache_place_is_own(const struct stat *st);

#endif
