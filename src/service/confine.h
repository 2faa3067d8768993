/* The HTTP process gives up what it does not need: only the warden, started before, makes cells. */
#ifndef SERVICE_CONFINE_H
#define SERVICE_CONFINE_H

#include <cordon/error.h>
#include <stdbool.h>

/* Before anything is opened in it: the data directory belongs to whom the process will be. */
int confine_prepare(const char *user, const char *data_dir, cordon_error *err);
/* Whether the process would become the shared user nobody, under whom other services may run: each of them could then
 * read the daemon's data. To be asked before confine_self(). */
bool confine_is_shared(const char *user);
/* From here on: that user and no privileges (if it was the superuser), no new ones, writing beneath the data directory
 * alone, no other program started, and no system call that a server has no use for. */
int confine_self(const char *user, const char *data_dir, cordon_error *err);

#endif
