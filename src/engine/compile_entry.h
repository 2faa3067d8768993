/* One kept compile step as a file: what it left and what it printed. */
#ifndef ENGINE_COMPILE_ENTRY_H
#define ENGINE_COMPILE_ENTRY_H

#include <stdbool.h>

#include "engine/compile_key.h"
#include "engine/result.h"
#include "output/collect.h"

/* More than this is compiled again: an entry is read into memory whole. */
#define COMPILE_ENTRY_BYTES_MAX (UINT64_C(128) << 20)

/* Writes to an empty file; 0, or -1 when it cannot be written, would be above `most` bytes, or is not worth keeping. */
int compile_entry_write(int fd, const struct compile_key *key, const struct collected *made,
                        const struct outcome *outcome, uint64_t most);
/* Reads all of it and checks everything; 0, or -1 when anything is not as it was written. `trusted`: this very file was
 * checked before, and the hashes of contents need not be made again. */
int compile_entry_read(int fd, const struct compile_key *key, bool trusted, struct collected *made,
                       struct outcome *outcome);

#endif
