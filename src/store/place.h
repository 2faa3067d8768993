/* Where a store lives: its directory, the names in it, and who may use it. */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include <cordon/error.h>
#include <stdbool.h>

#define PLACE_DATABASE "cordon.db"
#define PLACE_HEAD     "ledger.head"
#define PLACE_LOCK     "lock"

/* CORDON_DATA_DIR, STATE_DIRECTORY (systemd's; the first of several), then /var/lib/cordon for the superuser, and
 * $XDG_STATE_HOME/cordon or ~/.local/state/cordon for others. The caller frees it; NULL when none can be told. */
char *store_default_dir(void);

/* Opens the directory, making it with mode 0700 if `make`, and refuses one that others could have written to. Its
 * absolute path, freed by the caller, goes to *path; its descriptor to *fd. CORDON_ENOTFOUND when it is not there. */
int place_open(const char *data_dir, bool make, char **path, int *fd, cordon_error *err);

/* Only one process may write a ledger: the descriptor that holds the lock goes to *lock. One that is let go of within a
 * second is waited for. */
int place_lock(int dir, const char *path, int *lock, cordon_error *err);

#endif
