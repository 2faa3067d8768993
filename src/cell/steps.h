/* The mechanisms that init and the program are made of, one file each. Every function returns 0, or -1 with errno. */
#ifndef CELL_STEPS_H
#define CELL_STEPS_H

#include <sys/types.h>

#include "cell/cell.h"
#include "cell/report.h"

/* descriptors.c: closes every descriptor but these; negative ones are passed over. */
int descriptors_keep(const int *fds, unsigned count);

/* cgroup.c */
int cgroup_join(const int *files, size_t count);

/* identity.c */
int identity_become(unsigned id, bool own_ids);
/* Bounding set and securebits, while there is still the right to; ids may change afterwards without losing any. */
int identity_lock(void);
/* Every capability that is left. */
int identity_drop_capabilities(void);
int identity_new_keyring(void);
/* Before the rights go: only with them can the score not be taken back. Children inherit it. */
void identity_volunteer_for_oom(void);

/* network.c */
int network_loopback_up(void);
int network_bound_buffers(int proc_fd, int64_t bytes);

/* mounts.c: the new mount API in the forms a cell needs */
int mounts_make_private(void);
int mounts_new(const char *type, const char *const options[][2], uint64_t attributes);
int mounts_clone(int dir_fd, const char *path, bool recursive);
int mounts_restrict(int mount_fd, uint64_t attributes, bool recursive);
int mounts_attach(int mount_fd, int dir_fd, const char *path);

#define MOUNTS_NO_SETUID ((uint64_t)(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV))
#define MOUNTS_READ_ONLY (MUTANT(READONLY) ? MOUNTS_NO_SETUID : MOUNTS_NO_SETUID | MOUNT_ATTR_RDONLY)

/* system.c: what it sees of the host. `copies`: what is small is copied, and devices made, instead of bound; whether
 * they could be made is in `*own_nodes`. */
int system_show(int root_fd, bool copies, bool *own_nodes, enum cell_step *step);
int system_show_etc(int root_fd, char *const *names, bool copies);
/* Makes /etc/cordon/bin, the first directory of a cell's PATH, in a root whose /etc is there. */
int tools_show(int root_fd);

/* root.c: what the program sees. What needs neither the request nor its group first; then the rest, up to the entry
 * into the new root, which returns the work directory's descriptor. On failure `*step` and `*detail` tell where. */
int root_begin(enum cell_step *step);
int root_finish(int root_fd, const struct plan *plan, const struct cell_mount *sources, const int *mount_fds,
                size_t mount_fd_count, enum cell_step *step, uint32_t *detail);
/* The same for a slot, in two parts: the template, made once and copied with its mount namespace, and in the copy what
 * is the cell's own; returns the work directory's descriptor. */
int root_template(char *const *etc, enum cell_step *step);
/* `new_user`: its user namespace has no limits of its own yet. */
int root_on_template(const int64_t *limit, bool new_user, enum cell_step *step);
/* A zygote's: the template, a /proc that shows it its own processes, and a store for its own files. */
int root_for_zygote(const int64_t *limit, enum cell_step *step);
/* Mounts of a request into a root that stands. */
int root_place_mounts(const struct plan *plan, const int *mount_fds, uint32_t *detail);

/* wait.c: messages to a child; each leaves the process when there is no warden any more. */
void wait_for_byte(int fd);
/* One that comes with a byte. */
int wait_for_fd(int socket);
void wait_to_join(int report);
/* Maps the plan that comes with the message; `streams` are -1 where there is none. */
void wait_for_handover(int report, struct handover_message *message, struct plan *plan, int streams[STREAM_COUNT],
                       int *mount_fds);

/* streams.c: standard streams at 0..2, the value pipe at 3, `handover` (or -1) at CELL_HANDOVER_FD; everything else
 * closes on exec. `kept` are moved out of the way. */
int streams_connect(const int streams[STREAM_COUNT], int handover, int *kept[], unsigned kept_count);

/* rlimits.c */
/* Of this process (0), or from outside of another. */
int rlimits_apply(pid_t pid, const int64_t *limit, bool group_limits);

/* files.c */
int files_make(int dir_fd, const char *path, const char *text);
int files_write(const struct plan *plan, uint32_t *detail);

/* landlock.c: the rules that are every cell's, and then, with those for the request's mounts, their enforcement.
 * Without Landlock `ruleset` is -1 and nothing is done. */
struct landlock {
    int ruleset;
    uint64_t handled;
};
int landlock_prepare(struct landlock *landlock);
int landlock_apply(struct landlock *landlock, const struct plan_mount *mounts, size_t mount_count);

/* seccomp.c: returns the listener in *listener, or -1 there when the kernel gives none. `writable`: a mount of the
 * request is. *holds_still: a call that the warden has received runs no signal handler until it is answered. */
int seccomp_apply(bool writable, int *listener, bool *holds_still);

#endif
