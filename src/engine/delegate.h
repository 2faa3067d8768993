/* A delegated cgroup for an ordinary user's warden, asked of the systemd user manager. */
#ifndef ENGINE_DELEGATE_H
#define ENGINE_DELEGATE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it is worth asking: an ordinary user on cgroup v2, in a group that is not theirs, with a user manager. */
bool delegate_wanted(void);
/* Puts the process into a transient scope with Delegate=yes and waits until it is there. False when the manager did not
 * do it; the run then fails for want of the cgroup control, which says more than an error here could. */
bool delegate_scope(pid_t pid);

#endif
