/* Collected files, written into a directory of the host. */
#ifndef CLI_OUTDIR_H
#define CLI_OUTDIR_H

#include <cordon/error.h>
#include <jansson.h>

/* Makes the directory where it is missing; a descriptor of it in `*fd`. Done before the run, so that a mistake in the
 * name costs no run. */
int outdir_open(const char *path, int *fd, cordon_error *err);
/* Writes the `files` of a result beneath the directory, replacing files of the same name. */
int outdir_write(int fd, const json_t *files, cordon_error *err);

#endif
