/* The child side of a cell: everything between clone and user code.
 *
 * Two processes are made for a cell. Init (pid 1 of the cell's pid namespace) prepares namespaces and mounts, then
 * holds them until its lifeline ends. The program (pid 2) enters them, gives up every right, and becomes user code.
 * Both run in a copy of the warden's memory, so this code is async-signal-safe: no allocation, no stdio, no locks; the
 * warden has resolved everything it needs into the two structs below. tests/child-symbols.txt lists every symbol it may
 * use. */
#ifndef CELL_CELL_H
#define CELL_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

#define CELL_CGROUP_FILES_MAX 6
#define CELL_UID              1000

/* Where request mounts come from: as root a detached, idmapped mount comes with the go message; otherwise init opens
 * the path in its own copy of the mounts and compares it with the object the caller held. */
struct cell_mount {
    const char *source; /* absolute path, or NULL when the detached mount is handed over */
    uint64_t device, inode;
    const char *destination;
    bool writable;
    bool directory;
};

struct slot_setup {
    int report;                              /* SEQPACKET to the warden: records go out, two messages come in */
    int lifeline;                            /* end of file means: the warden is gone, leave */
    int gate;                                /* a byte is written here when everything stands: the program may enter */
    int cgroup_files[CELL_CGROUP_FILES_MAX]; /* v1 `tasks` files; unused entries are -1 */
    bool own_ids;                            /* ids 0 (init) and 1000 (program) are both mapped */
    uint32_t namespaces;                     /* CLONE_NEW… flags that this cell has */
    const struct cell_mount *mounts;         /* of the request; a slot made ahead has none */
    uint32_t mount_count;
    int64_t tcp_buffer_bytes;
};

/* Init is told twice to go on: by one byte when its id maps are written, and by this when there is a request to prepare
 * for, which may be much later. The detached mounts of the request come with it. */
struct slot_order {
    int64_t disk_bytes, inodes;
    uint32_t etc_length;
    char etc[2036]; /* names beneath /etc that the program may read, each ended by NUL */
};

struct program_setup {
    int report;
    int init_pidfd;
    int gate; /* the read end; end of file means that init failed */
    int cgroup_files[CELL_CGROUP_FILES_MAX];
    int stdio[4]; /* stdin, stdout, stderr, value pipe or -1 */
    bool own_ids;
    bool group_limits; /* memory and processes are bounded by a cgroup; otherwise rlimits must do it */
    uint32_t namespaces;
    uint32_t optional;
    const struct plan *plan;
    const struct cell_mount *mounts;
    uint32_t mount_count;
};

_Noreturn void cell_init_main(const struct slot_setup *setup);
_Noreturn void cell_program_main(const struct program_setup *setup);

#endif
