/* The mechanisms that init and the program are made of, one file each. Every function returns 0, or -1 with errno. */
#ifndef CELL_STEPS_H
#define CELL_STEPS_H

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

/* network.c */
int network_loopback_up(void);
int network_bound_buffers(int proc_fd, int64_t bytes);

/* mounts.c: the new mount API in the forms a cell needs */
int mounts_make_private(void);
int mounts_new(const char *type, const char *const options[][2], uint64_t attributes);
int mounts_clone(int dir_fd, const char *path, bool recursive);
int mounts_restrict(int mount_fd, uint64_t attributes, bool recursive);
int mounts_attach(int mount_fd, int dir_fd, const char *path);

/* root.c: what the program sees. What needs neither the request nor its group first; then the rest, up to the entry
 * into the new root, which returns the work directory's descriptor. On failure `*step` and `*detail` tell where. */
int root_begin(enum cell_step *step);
int root_finish(const struct program_setup *setup, int root_fd, const int *mount_fds, size_t mount_fd_count,
                enum cell_step *step, uint32_t *detail);

/* wait.c: messages to a child; each leaves the process when there is no warden any more. */
void wait_for_byte(int fd);
void wait_at_gate(int gate, int namespaces[2]);
/* Joins; `others` has room for PLAN_MOUNT_MAX descriptors that came beside. */
void wait_to_join(int report, int *others, size_t *other_count);

/* rlimits.c */
int rlimits_apply(const struct program_setup *setup);

/* files.c */
int files_write(const struct plan *plan, uint32_t *detail);

/* landlock.c */
int landlock_apply(const struct program_setup *setup, bool *enforced);

/* seccomp.c: returns the listener in *listener, or -1 there when the kernel gives none. */
int seccomp_apply(int *listener);

#endif
