/* What library and warden say to each other. The warden has one SEQPACKET socket to its engine, on which runs are
 * ordered, and one to each run, on which that run's events come. Closing a run's socket cancels it. */
#ifndef WARDEN_PROTOCOL_H
#define WARDEN_PROTOCOL_H

#include <cordon/result.h>
#include <stdint.h>

#include "base/control.h"
#include "plan/limits.h"

/* The engine's socket in the warden. */
#define WARDEN_SOCKET 3
/* Argument of the warden: look for the cgroup at the first order, for it is about to be moved into another one. */
#define WARDEN_LATE_GROUP "--late-group"

enum order_type {
    ORDER_RUN,   /* plan, run's socket, mount sources: run it */
    ORDER_POOL,  /* plan of what waits in it, plan of its zygote if it has one: waiting cells for such runs */
    ORDER_WARM,  /* socket: make `count` cells of a pool ready; one struct event_warm when they are, or cannot be */
    ORDER_POOLS, /* socket: one struct event_pool for each pool, then end of file */
    ORDER_BELL   /* timer that rings when something was said on the socket of an offered cell, or it was closed */
};

enum pool_kind {
    POOL_SLOTS,   /* everything is there but the program */
    POOL_STARTED, /* a started interpreter waits for its code */
    POOL_FORKED   /* the same, forked off a zygote */
};

struct order {
    uint32_t size; /* of this struct */
    uint32_t type;
    uint64_t accepted_us;  /* RUN: when the library took the request */
    uint32_t files_read;   /* RUN: somebody reads what the program wrote, once it has ended */
    uint32_t quiet;        /* RUN: nothing is given to read, and nobody looks at what is printed before the end */
    uint64_t pool;         /* POOL, WARM: its key */
    uint32_t kind;         /* POOL: enum pool_kind */
    uint32_t count;        /* WARM: how many cells */
    uint32_t for_mounts;   /* POOL: slots whose program has not given up its rights, and can place mounts */
    uint32_t fork_only;    /* POOL: there is nothing to start instead of what a zygote forks */
    uint64_t memory_bytes; /* POOL: the most that all waiting cells of this warden may hold together */
    char name[32];         /* POOL: for people */
};

/* From the library on a run's socket. */
enum command_type { COMMAND_CANCEL = 1, COMMAND_OUTPUT_LIMIT, COMMAND_TAKE };

/* COMMAND_TAKE: an offered cell is this run's now; its code follows. The others are the first field alone. */
struct run_command {
    uint32_t type;
    uint32_t files_read; /* as in an order */
    uint64_t accepted_us, sent_us;
};

enum event_type { EVENT_STARTED = 1, EVENT_FAILED, EVENT_ENDED, EVENT_WARM, EVENT_POOL, EVENT_OFFER };

/* The cell could not be made, or the program not started: nothing of the user's ran. */
struct event_failed {
    uint32_t type;
    int32_t error;
    uint32_t control; /* enum control, or CONTROL_NONE */
    uint32_t step;    /* enum cell_step */
    uint32_t detail;
    char text[200];
};

/* Descriptors that come with it: both ends of stdin (whoever writes must not be the only one to hold the pipe), the
 * read ends of stdout and stderr, and of the value pipe if the plan has one. */
enum started_fd { STARTED_STDIN_READ, STARTED_STDIN_WRITE, STARTED_STDOUT, STARTED_STDERR, STARTED_VALUE, STARTED_MAX };

struct event_started {
    uint32_t type;
};

/* The start of a quiet run is told so much later, or just before its end, and without the ends of stdin, which are
 * closed. Who waits for the end of a short program is woken once. */
#define QUIET_START_US 3000

/* On the engine's socket, unasked: a waiting cell that the library may give code to by itself. Descriptors: the run's
 * socket, on which it is taken first; the program's, for the code; then those of a start. The warden hears what is said
 * on that socket when the bell rings. */
enum offer_fd { OFFER_RUN, OFFER_PROGRAM, OFFER_STREAMS, OFFER_MAX = OFFER_STREAMS + STARTED_MAX };

struct event_offer {
    uint32_t type;
    uint32_t zero;
    uint64_t pool;
    int64_t limit[LIMIT_COUNT]; /* in force; only for runs that want just these */
};

struct event_warm {
    uint32_t type;
    uint32_t ready;
    char text[200]; /* why there are not more */
};

struct event_pool {
    uint32_t type;
    uint32_t kind;
    uint64_t key;
    char name[32];
    uint32_t ready, filling, target;
    uint64_t served, missed, failed;
    uint64_t cells_unique_bytes, cells_shared_bytes;   /* of the waiting cells */
    uint64_t zygote_unique_bytes, zygote_shared_bytes; /* of the zygote, when there is one */
    uint32_t zygote; /* 0: none, 1: serving, 2: failed and given up; then started cells stand in */
    uint32_t zygotes_started;
    char text[200]; /* the last failure */
};

struct wire_denial {
    char kind[12];
    char what[96];
    char hint[160];
    uint32_t count;
};

#define DENIALS_MAX 48

/* What a cell may read from and write to the disk of /usr, each way. Less would slow the first start of a large
 * runtime; more would let a few cells take a fast disk from all others. */
#define IO_BYTES_PER_SECOND (256 << 20)

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct usage {
    uint64_t wall_us;
    uint64_t cpu_user_us, cpu_system_us;
    uint64_t memory_peak_bytes;
    uint64_t memory_program_peak_bytes; /* sampled */
    uint64_t processes_peak;
    uint64_t disk_bytes, inodes; /* at the end */
};

/* Which limit was met, beside the verdict: a program may meet one and cope. */
enum limit_hit {
    HIT_PROCESSES = 1 << 0,
    HIT_DISK_BYTES = 1 << 1,
    HIT_INODES = 1 << 2,
    HIT_FILE_BYTES = 1 << 3,
    HIT_MEMORY = 1 << 4,
    HIT_CPU = 1 << 5,
};

/* How the cell came to be. */
enum warmth { WARMTH_COLD, WARMTH_SLOT, WARMTH_STARTED, WARMTH_FORKED };

struct event_ended {
    uint32_t type;
    uint32_t status;   /* cordon_status */
    int32_t exit_code; /* -1 when it did not exit by itself */
    int32_t signal;
    uint32_t hits;
    uint32_t controls; /* CONTROL_BIT of those in force */
    uint32_t cgroup;   /* enum cgroup_kind */
    uint32_t uid;      /* host uid of the program */
    uint32_t warm;     /* enum warmth */
    uint32_t taken;    /* 0: it was offered, and may have ended before it had its code */
    uint64_t start_us; /* accepted → first user instruction */
    uint64_t run_us;
    struct usage usage;
    uint32_t denial_count;
    uint32_t denials_dropped; /* kinds of denial beyond the table */
};

/* Sent up to the last denial in use; the work directory's descriptor comes with it. */
struct ended_message {
    struct event_ended ended;
    struct wire_denial denials[DENIALS_MAX];
};

#endif
