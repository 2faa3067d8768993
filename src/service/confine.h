/* The HTTP process gives up what it does not need: only the warden, started before, makes cells. */
#ifndef SERVICE_CONFINE_H
#define SERVICE_CONFINE_H

#include <cordon/error.h>

/* Before anything is opened in it: the data directory belongs to whom the process will be. */
int confine_prepare(const char *user, const char *data_dir, cordon_error *err);
/* From here on: that user and no privileges (if it was the superuser), no new ones, writing beneath the data directory
 * alone, no other program started, and no system call that a server has no use for. */
int confine_self(const char *user, const char *data_dir, cordon_error *err);

#endif
