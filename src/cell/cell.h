/* The child side of a cell: everything between clone and user code.
 *
 * Two processes make a cell. Init (pid 1 of its pid namespace) holds the namespaces until its lifeline ends. The
 * program (pid 2) gives up every right and becomes user code. A cell is made in one of two ways: for one request that
 * is there already ("cold": init makes the network while the program builds the root), or ahead of any request as a
 * slot, in which init builds the root on a copy of a mount template and the program, cloned by the warden or forked off
 * a started interpreter, waits for what it is to be.
 *
 * All of it runs in a copy of somebody else's memory, so this code is async-signal-safe: no allocation, no stdio, no
 * locks. tests/child-symbols.txt lists every symbol it may use. */
#ifndef CELL_CELL_H
#define CELL_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

#define CELL_CGROUP_FILES_MAX 5
#define CELL_UID              1000

/* Where a program has what: standard streams, the value of the last expression, and in a waiting cell the socket on
 * which it gets its code. */
enum cell_stream { STREAM_IN, STREAM_OUT, STREAM_ERR, STREAM_VALUE, STREAM_COUNT };
#define CELL_HANDOVER_FD 4

/* Where a request's mount comes from when it is not handed over as a detached mount: the program opens the path in its
 * own copy of the mounts and compares it with the object the caller held. */
struct cell_mount {
    const char *source; /* absolute path, or NULL when the detached mount is handed over */
    uint64_t device, inode;
};

/* A program that the warden cloned gets this when the cell's control group stands, with the files to join it by. Init,
 * which runs nothing of the request, stays where the warden is. */
struct join_message {
    uint32_t cgroup_files;
};

/* What the program is to be: comes with the plan, the standard streams, the value pipe if the plan has one, and for a
 * slot the detached mounts. */
struct handover_message {
    uint32_t waits; /* the program is an interpreter that waits for its code on CELL_HANDOVER_FD */
    uint32_t mount_count;
};

/* The namespaces of a slot, in the order in which their descriptors are handed round. The first two belong to its
 * identity and outlive it. */
enum slot_namespace {
    SLOT_USER, /* those of an identity */
    SLOT_NET,
    SLOT_IPC,
    SLOT_UTS,
    SLOT_IDENTITY,
    SLOT_PID = SLOT_IDENTITY, /* the cell's own */
    SLOT_MNT,
    SLOT_NAMESPACES
};

struct init_setup {
    int report;          /* SEQPACKET to the warden */
    int lifeline;        /* end of file means: the warden is gone, leave */
    int gate;            /* cold: the network namespace is sent here when it stands; -1 in a slot */
    int proc;            /* the host's /proc, for the settings of the new network */
    bool own_ids;        /* ids 0 (init) and 1000 (program) are both mapped */
    bool new_identity;   /* slot: its namespaces are new; the maps come later, as for a cold init */
    bool for_fork;       /* slot: the program comes from a zygote, which needs all its namespaces */
    uint32_t namespaces; /* CLONE_NEW… flags that this cell has; a new network is init's to make */
    int64_t tcp_buffer_bytes;
    int64_t limit[LIMIT_COUNT]; /* slot: of its store */
};

struct program_setup {
    int report;
    int init_pidfd;
    int gate; /* cold: the read end; end of file means that init failed. -1 in a slot */
    bool own_ids;
    bool group_limits; /* memory and processes are bounded by a cgroup; otherwise rlimits must do it */
    bool confined;     /* slot: it will get no mounts, and gives up its rights before it waits */
    uint32_t namespaces;
    const struct cell_mount *mounts; /* cold, one for each of the plan's mounts */
};

/* A program forked off a started interpreter, to enter a slot. Comes with the slot's namespaces, the cgroup files, the
 * standard streams, the value pipe if there is one, and the socket it reports and then waits on. */
struct enter_message {
    uint32_t cgroup_files;
    uint32_t has_value;
    uint32_t own_ids;
    uint32_t group_limits;
    uint32_t into_cgroup; /* v2: the one cgroup file is the group to be born into */
    uint32_t number;      /* names the request in the answer */
    uint32_t wait_ms;     /* so long a program is waited for before the interpreter warms up */
    int64_t limit[LIMIT_COUNT];
};
#define ENTER_FDS_MAX (SLOT_NAMESPACES + CELL_CGROUP_FILES_MAX + STREAM_COUNT + 1)

/* A started interpreter from which programs are forked. */
struct zygote_setup {
    int socket;   /* requests come by it; at CELL_ZYGOTE_FD in the interpreter */
    int template; /* mount namespace to copy */
    int noise;    /* where what it prints goes */
    bool own_ids;
    unsigned owner; /* of the slots: its id */
    const struct plan *plan;
};
#define CELL_ZYGOTE_FD 3

/* What a zygote says: that it serves, and for each request whom it forked. The helper's pid is to be reaped. */
struct zygote_answer {
    uint32_t number; /* the request's; 0: it serves */
    int32_t helper, pid;
    int32_t error;
};

_Noreturn void cell_zygote_main(const struct zygote_setup *setup);
_Noreturn void cell_init_main(const struct init_setup *setup);
_Noreturn void cell_slot_init_main(const struct init_setup *setup);
_Noreturn void cell_program_main(const struct program_setup *setup);
_Noreturn void cell_slot_program_main(const struct program_setup *setup);
/* In the forked process, which is born into the slot's user and pid namespace: returns restricted, its streams in place
 * and CELL_HANDOVER_FD open, or not at all. */
void cell_forked_main(const struct enter_message *message, int *fds);

#endif
