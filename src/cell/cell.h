/* The child side of a cell: everything between clone and user code.
 *
 * Two processes are made for a cell, and share the work. Init (pid 1 of the cell's pid namespace) makes the network and
 * then holds the namespaces until its lifeline ends. The program (pid 2) builds the root meanwhile, gives up every
 * right, and becomes user code. Both run in a copy of the warden's memory, so this code is async-signal-safe: no
 * allocation, no stdio, no locks; the warden has resolved everything it needs into the two structs below.
 * tests/child-symbols.txt lists every symbol it may use. */
#ifndef CELL_CELL_H
#define CELL_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

#define CELL_CGROUP_FILES_MAX 4
#define CELL_UID              1000

/* Where a request's mount comes from: as root a detached, idmapped mount comes with the join message; otherwise the
 * program opens the path in its own copy of the mounts and compares it with the object the caller held. */
struct cell_mount {
    const char *source; /* absolute path, or NULL when the detached mount is handed over */
    uint64_t device, inode;
    const char *destination;
    bool writable;
    bool directory;
};

/* Both processes get one message from the warden when the cell's control group stands, with the files to join it by
 * and, for the program, the detached mounts after them, or for init the program's pidfd. Init gets a byte before, when
 * its id maps are written. */
struct join_message {
    uint32_t cgroup_files;
};

struct init_setup {
    int report;          /* SEQPACKET to the warden */
    int lifeline;        /* end of file means: the warden is gone, leave */
    int gate;            /* network and cgroup namespaces are sent here when they stand: the program may go on */
    int proc;            /* the host's /proc, for the settings of the new network */
    bool own_ids;        /* ids 0 (init) and 1000 (program) are both mapped */
    uint32_t namespaces; /* CLONE_NEW… flags that this cell has; the network is init's to make */
    int64_t tcp_buffer_bytes;
};

struct program_setup {
    int report;
    int init_pidfd;
    int gate;     /* the read end; end of file means that init failed */
    int stdio[4]; /* stdin, stdout, stderr, value pipe or -1 */
    bool own_ids;
    bool group_limits; /* memory and processes are bounded by a cgroup; otherwise rlimits must do it */
    uint32_t namespaces;
    const struct plan *plan;
    const struct cell_mount *mounts;
};

_Noreturn void cell_init_main(const struct init_setup *setup);
_Noreturn void cell_program_main(const struct program_setup *setup);

#endif
