/* Small files that people write: manifests, settings, rules, certificates. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <cordon/error.h>
#include <stddef.h>

/* The whole file, with a NUL after it, freed by the caller. More than `most` bytes are an error, not a part of it;
 * `step` is the error's. A pipe or a device is not waited for. */
int file_read(const char *path, size_t most, const char *step, char **text, size_t *length, cordon_error *err);

#endif
