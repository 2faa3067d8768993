/* The cell's control group: one directory (v2) or one per controller (v1), made for one run and never used again. */
#ifndef WARDEN_CGROUP_H
#define WARDEN_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cell.h"
#include "warden/protocol.h"

enum cgroup_controller { CG_MEMORY, CG_PIDS, CG_CPU, CG_CPUACCT, CG_CONTROLLERS };

/* v1: a group that bounds what is read and written, for one cell after the other. */
struct io_group {
    int tasks; /* -1: could not be made */
    unsigned users;
    bool made;
};
#define IO_GROUPS 64

/* Where cells' groups are made: directories of this warden's own group. */
struct cgroup_root {
    enum cgroup_kind kind;
    int dirs[CG_CONTROLLERS]; /* v2 uses the first only */
    int io_dir;               /* v1: of the blkio controller; -1: none */
    char io_device[24];       /* "254:0": the disk of /usr, when it can be throttled; else empty */
    struct io_group io[IO_GROUPS];
    char prefix[64]; /* cordon-<pid>-t<start time>-n<pid namespace>- */
    int error;       /* why there is none */
    const char *cause;
};

/* What is read of a group when its program has ended. */
enum cgroup_counter { CG_CPU_TIME, CG_CPU_SYSTEM, CG_MEMORY_PEAK, CG_MEMORY_PARTS, CG_PIDS_PEAK, CG_COUNTERS };

struct cgroup {
    enum cgroup_kind kind;
    int dirs[CG_CONTROLLERS];
    char name[96];
    int join_files[CELL_CGROUP_FILES_MAX]; /* v1: the `tasks` files the child writes itself into; the last is io's */
    struct io_group *io;
    bool io_bounded;
    int counters[CG_COUNTERS]; /* -1: opened when needed */
};
#define CGROUP_EMPTY                                                                                                   \
    ((struct cgroup){.kind = CGROUP_NONE,                                                                              \
                     .dirs = {-1, -1, -1, -1},                                                                         \
                     .join_files = {-1, -1, -1, -1, -1},                                                               \
                     .counters = {-1, -1, -1, -1, -1}})

struct cgroup_counters {
    uint64_t cpu_user_us, cpu_system_us;
    uint64_t memory_peak_bytes;
    uint64_t processes_peak;
    uint64_t oom_kills;
    uint64_t process_refusals; /* forks that met the limit */
};

/* Finds a place. `kind` is CGROUP_NONE when there is none; `cause` says why. */
void cgroup_root_find(struct cgroup_root *root);
/* Removes what dead wardens left there; `own` groups are this one's. */
void cgroup_sweep(const struct cgroup_root *root, unsigned own);

/* Without limits yet; 0 or -1 with errno, and on failure nothing is left. */
int cgroup_create(struct cgroup_root *root, unsigned number, struct cgroup *cgroup);
/* `limit` as in a plan; before any of the program's processes is in it. */
int cgroup_limit(const struct cgroup *cgroup, const int64_t *limit);
/* `limit` as it is in force: what cannot have happened within it is not looked up. */
void cgroup_read(const struct cgroup *cgroup, const int64_t *limit, struct cgroup_counters *counters);
/* Opens them ahead, for a group that will be asked when somebody waits for the answer. */
void cgroup_open_counters(struct cgroup *cgroup);
/* Counters, open already, count from here where the kernel can do that; what was used of the processors before, where
 * it cannot. */
void cgroup_begin(const struct cgroup *cgroup, uint64_t *user_us, uint64_t *system_us);
uint64_t cgroup_memory_now(const struct cgroup *cgroup);
/* The memory that only its programs hold at this moment: anonymous pages and files of tmpfs, without the page cache of
 * other files and without the kernel's own. */
uint64_t cgroup_program_memory(const struct cgroup *cgroup);
/* A descriptor that tells when the kernel kills in the group for want of memory, or -1 with errno: an eventfd on v1, on
 * v2 a file that has something urgent then. */
int cgroup_watch_memory(const struct cgroup *cgroup);
uint64_t cgroup_oom_kills(const struct cgroup *cgroup);
uint64_t cgroup_cpu_us(const struct cgroup *cgroup);
/* v2: kills every process in it; v1 has no such thing and relies on init's death. */
void cgroup_kill(const struct cgroup *cgroup);
/* Whether it has a processor only when nobody else wants it; where the kernel knows that (5.15). */
void cgroup_set_idle(const struct cgroup *cgroup, bool idle);
/* 0, or -1 with errno EBUSY while processes remain. */
int cgroup_remove(const struct cgroup_root *root, struct cgroup *cgroup);
/* Everybody who is to join has. */
void cgroup_joined(struct cgroup *cgroup);
void cgroup_close(struct cgroup *cgroup);

/* v2: lets a zygote with this id fork children into the group, from the group of zygotes beside it. On v1 nobody needs
 * to be let. 0, or -1 with errno. */
int cgroup_admit(const struct cgroup_root *root, const struct cgroup *cgroup, uid_t owner);
/* v2: the group of this warden's zygotes, made if need be; its descriptor, or -1. */
int cgroup_open_zygotes(const struct cgroup_root *root);
void cgroup_remove_zygotes(const struct cgroup_root *root);

/* cgroup_io.c. The disk that holds /usr, into `io_device`; `mounts` is /proc/self/mounts. */
void cgroup_io_find(struct cgroup_root *root, const char *mounts);
/* v1: the cell joins a group that is bounded, when there is one; later it is another's. */
void cgroup_io_take(struct cgroup_root *root, struct cgroup *cgroup);
void cgroup_io_leave(struct cgroup *cgroup);
void cgroup_io_remove(struct cgroup_root *root);
/* v2: bounds the group itself. 0 or -1 with errno. */
int cgroup_io_bound_v2(int dir, const char *device);

/* The two kinds behind the calls above. */
/* `mounts` and `groups`: /proc/self/mounts and /proc/self/cgroup. */
bool cgroup_v1_find(struct cgroup_root *root, const char *mounts, const char *groups);
bool cgroup_v2_find(struct cgroup_root *root, const char *mounts, const char *groups);
/* The next line of a text, or NULL. */
const char *cgroup_next_line(const char *line);
int cgroup_v1_create(const struct cgroup_root *root, struct cgroup *cgroup);
int cgroup_v2_create(const struct cgroup_root *root, struct cgroup *cgroup); /* also bounds its io */
int cgroup_v1_watch_memory(const struct cgroup *cgroup);
int cgroup_v1_limit(const struct cgroup *cgroup, const int64_t *limit);
int cgroup_v2_limit(const struct cgroup *cgroup, const int64_t *limit);

/* Kernel files. */
int cgroup_write_number(int dir, const char *file, int64_t number);
uint64_t cgroup_read_number(int dir, const char *file);
/* The number after `key` in a file of "key number" lines; 0 when absent. */
uint64_t cgroup_read_key(int dir, const char *file, const char *key);

#endif
