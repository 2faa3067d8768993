/* The mechanisms that init and the program are made of, one file each. Every function returns 0, or -1 with errno. */
#ifndef CELL_STEPS_H
#define CELL_STEPS_H

#include "cell/cell.h"
#include "cell/report.h"

/* descriptors.c: closes every descriptor but these; negative ones are passed over. */
int descriptors_keep(const int *fds, unsigned count);

/* cgroup.c */
int cgroup_join(const int files[CELL_CGROUP_FILES_MAX]);

/* identity.c */
int identity_become(unsigned id, bool own_ids);
/* For the program: every set, the bounding one too, and locked. */
int identity_drop_capabilities(void);
/* For init, which executes nothing more: what it holds, and no way to gain any. */
int identity_retire(void);
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

/* root.c: what the program sees. What needs no request first; then the rest, up to the entry into the new root, which
 * returns the work directory's descriptor. On failure `*step` and `*detail` tell where. */
int root_begin(const struct slot_setup *setup, enum cell_step *step);
int root_finish(const struct slot_setup *setup, const struct slot_order *order, int root_fd, const int *mount_fds,
                uint32_t mount_fd_count, enum cell_step *step, uint32_t *detail);

/* rlimits.c */
int rlimits_apply(const struct program_setup *setup);

/* files.c */
int files_write(const struct plan *plan, uint32_t *detail);

/* landlock.c */
int landlock_apply(const struct program_setup *setup, bool *enforced);

/* seccomp.c: returns the listener in *listener, or -1 there when the kernel gives none. */
int seccomp_apply(int *listener);

#endif
