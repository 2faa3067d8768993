/* What compile steps left, kept by content, so that the same program is compiled once.
 *
 * A directory of the user's own holds one file for each; any number of threads and processes use it at once. Everything
 * in it came out of a cell and is only ever put into one. Nothing here is an error for the caller: what cannot be
 * found, read or kept is compiled again. */
#ifndef ENGINE_COMPILE_CACHE_H
#define ENGINE_COMPILE_CACHE_H

#include "engine/compile_entry.h"

struct compile_cache;

#define COMPILE_CACHE_BYTES ((size_t)512 << 20)
/* More entries than this are not kept either, so that a look through the directory stays short. */
#define COMPILE_CACHE_ENTRIES_MAX 8192

/* `directory` NULL: the user's. `bytes` 0: COMPILE_CACHE_BYTES. Copies what it is given; NULL when memory is out. */
struct compile_cache *compile_cache_new(const char *directory, size_t bytes, const char *tenant);
void compile_cache_free(struct compile_cache *cache);
const char *compile_cache_tenant(const struct compile_cache *cache);
/* The directory, opened; -1 when there is none. */
int compile_cache_open(const struct compile_cache *cache);

/* True: `made` and `outcome` are as the step left them; limits are the caller's to fill in. */
bool compile_cache_find(struct compile_cache *cache, const struct compile_key *key, struct collected *made,
                        struct outcome *outcome);
/* Keeps it if it succeeded, and removes what was not used for longest while there is too much. */
void compile_cache_keep(struct compile_cache *cache, const struct compile_key *key, const struct collected *made,
                        const struct outcome *outcome);

#endif
