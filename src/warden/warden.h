/* The warden: the only process that makes cells. Single-threaded; makes, watches, kills, accounts, gives verdicts. It
 * never reads what a program prints, and never opens a path that a program could have made.
 *
 * Life of a cold cell:  order → init cloned, id maps; program cloned; control group made and limited, both told to join
 * it → init makes the network and lets the program go on, the program builds the root (PREPARED) and gives up its
 * rights (READY: restrictions are in force) → exec → running → ended (verdict sent) → both reaped, group removed →
 * gone.
 *
 * Life of a waiting cell:  slot: group made, init cloned onto a copy of the mount template (PREPARED) → program cloned,
 * or forked off the pool's zygote → restricted (READY) → its interpreter says that it waits → an order comes: limits
 * set, code handed over → running, and so on. Each serves one run. */
#ifndef WARDEN_WARDEN_H
#define WARDEN_WARDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cell.h"
#include "cell/report.h"
#include "plan/plan.h"
#include "warden/cgroup.h"
#include "warden/protocol.h"
#include "warden/scout.h"
#include "warden/verdict.h"

struct warden;
struct cell;

/* A descriptor in the loop and what to do when it is ready. */
struct watch {
    int fd;
    void (*ready)(struct warden *warden, struct cell *cell, uint32_t events);
    struct cell *cell;
};

enum cell_phase {
    PHASE_MAKING,   /* a slot's root is being built */
    PHASE_SLOT,     /* ready for a plan */
    PHASE_WARMING,  /* its interpreter starts */
    PHASE_WAITING,  /* its interpreter waits for code */
    PHASE_STARTING, /* an order's program is on its way to exec */
    PHASE_RUNNING,
    PHASE_ENDED
};

struct cell {
    struct cell *next, **link;
    enum cell_phase phase;
    bool ordered; /* the four below are an order's */
    struct plan plan;
    int plan_fd;
    struct cell_mount mounts[PLAN_MOUNT_MAX];
    int mount_fds[PLAN_MOUNT_MAX];
    int streams[STREAM_COUNT];  /* the program's ends, until it has them */
    int near[STARTED_MAX];      /* the library's, until it has them */
    struct pool *pool;          /* NULL: made for one order */
    bool probe;                 /* runs the pool\'s check for a new zygote */
    struct identity *identity;  /* recycled namespaces; NULL: its own */
    int slot[SLOT_NAMESPACES];  /* for a zygote's child to enter */
    int64_t limit[LIMIT_COUNT]; /* in force */
    enum warmth warmth;
    uint64_t patience_us; /* by when it should be ready to wait */
    uint64_t made_us;
    uint32_t number;        /* names it to the zygote */
    int forked_talk;        /* the warden's end for the program that the zygote is forking, or -1 */
    struct usage before;    /* what starting it took */
    struct watch run;       /* the library's end: commands, or end of file */
    struct watch init_talk; /* records from init */
    struct watch talk;      /* records from the program; end of file is a successful exec */
    struct watch init;      /* pidfd */
    struct watch program;   /* pidfd */
    struct watch listener;  /* seccomp notifications */
    struct watch oom;       /* v1 eventfd, v2 memory.events */
    pid_t init_pid, program_pid;
    int lifeline; /* write end; init has the other */
    int gate;     /* cold: read end for the program; init writes when the network stands */
    int work_fd;
    struct cgroup cgroup;
    uint32_t namespaces;
    uint32_t controls;
    uid_t uid;
    uint64_t user_namespace; /* its number, until an identity has it */
    bool init_reaped, program_reaped;
    bool program_ready; /* restrictions are in force; exec is next */
    bool offered;       /* the library may take it by itself */
    bool by_bell;       /* it was offered: its socket is looked at when the bell rings */
    bool rushed;        /* forked in a crowd: waits a little before it warms up */
    bool stands_back;   /* in the making, or dying: it has a processor when nobody else wants it */
    bool holds_still;   /* while it waits in a call, no code of its own runs */
    bool used_network;  /* it made a socket */
    bool used_ipc;      /* it may have made an object in its IPC namespace */
    bool being_made;    /* by the maker, who has not answered yet */
    bool made_again;    /* by another maker */
    bool files_read;    /* the order's: what it wrote is looked at after its end */
    bool quiet;         /* the order's: its start is told late */
    bool alone;         /* when it ended, there had never been a second task */
    bool put_down;      /* after its end: killed, though not reaped */
    bool emptied;       /* its group was emptied, or need not be */
    bool gone;          /* nothing of it is left; freed at the end of the round */
    struct ending ending;
    uint64_t accepted_us, started_us, ended_us;
    uint64_t wall_deadline_us, next_check_us, retry_us;
    uint64_t streams_due_us; /* to the library; 0: it has them, or need not have them yet */
    struct sample {
        uint64_t memory_bytes, processes, cpu_us;
    } sampled_peak;              /* only without cgroup */
    uint64_t program_peak_bytes; /* of memory that only its programs hold; sampled */
    struct watch count;          /* an exact count of its memory is being made by a process of its own */
    pid_t count_pid;
    uint64_t count_deadline_us;
    uint64_t rusage_user_us, rusage_system_us, rusage_peak_bytes;
    uint32_t hits;
    /* notifications: a bucket of answers, so that a flood costs the host little */
    unsigned notify_tokens;
    uint64_t notify_refill_us;
    bool notify_paused;
    struct seccomp_notif *observed; /* a call that waits for the scout to read its address; allocated with the cell */
    bool observed_waits;
    struct wire_denial *denials; /* DENIALS_MAX from the first on: few cells have any, and forks copy pages */
    uint32_t denial_count, denials_dropped;
};

struct scout {
    pid_t pid;
    struct watch watch;
    struct cell *cell; /* whose question it is working on */
    uint64_t deadline_us;
    pid_t lost[16];
    unsigned lost_count;
};

/* Empties groups before they are removed. */
struct emptier {
    pid_t pid; /* 0: none is at work */
    struct watch watch;
    struct cell *cell; /* whose group it empties; NULL when that one is gone */
    bool many;         /* removed groups that are still there */
    unsigned removals;
};

/* User, network, IPC and UTS namespace of slots, used by one cell at a time and again only if proven clean. */
#define IDENTITY_MAX 27
struct identity {
    enum { IDENTITY_UNMADE, IDENTITY_BUSY, IDENTITY_FREE } state;
    int spaces[SLOT_IDENTITY];
    uint64_t user_namespace;  /* its number, which gives the cells their ids */
    char network_before[256]; /* what its counters said when it was new */
    bool unused;              /* its last cell made no socket */
};

/* A root that is copied with its mount namespace. */
struct template;

/* Clones the inits of slots. */
struct maker {
    pid_t pid;
    pid_t helper; /* that was not dead when it was last looked for; 0: none */
    struct watch watch;
};

struct warden {
    struct maker maker;
    struct scout scout;
    struct emptier emptier;
    struct identity identities[IDENTITY_MAX];
    struct template *templates;
    struct pool *pools;
    uint64_t pool_bytes_max;
    uint64_t last_end_us;
    uint64_t descriptors_max;
    uint32_t last_cell;
    unsigned strangers; /* children to be reaped that no cell has: helpers, and those of a zygote that died untold */
    uint64_t strangers_us, strangers_until_us; /* when to look for them next; until when they are expected */
    int epoll;
    struct watch engine;
    struct watch bell; /* rung by the library */
    struct cell *cells;
    struct cgroup_root cgroups;
    bool rootless; /* one id only: the caller's own */
    bool leaving;
    bool swept;      /* what dead wardens left is removed */
    bool late_group; /* the cgroup is looked for at the first order */
    uid_t uid;       /* the caller's, as the host knows it */
    gid_t gid;
    int own_pid_ns;
    uid_t slot_owner; /* 0: not claimed yet */
    int proc;         /* /proc, for the settings of new networks */
    unsigned next_number;
    long processors;
    pid_t pid;
    /* Set when the warden itself cannot work: every order is answered with it. */
    struct event_failed broken;
};

/* clang-format off */
#define WARDEN_EMPTY {.engine.fd = -1, .bell.fd = -1, .scout.watch.fd = -1, .maker.watch.fd = -1, .emptier.watch.fd = -1}
/* clang-format on */

/* serve.c */
int warden_serve(struct warden *warden);

/* loop.c */
int loop_watch(struct warden *warden, struct watch *watch, int fd, struct cell *cell,
               void (*ready)(struct warden *, struct cell *, uint32_t));
/* Also wakes on POLLPRI, as v2's memory.events does. */
void loop_watch_priority(struct warden *warden, struct watch *watch);
void loop_rearm(struct warden *warden, struct watch *watch, bool on);
void loop_forget(struct warden *warden, struct watch *watch); /* closes the descriptor */
int loop_release(struct warden *warden, struct watch *watch); /* hands it back open */
/* The descriptor goes to a watch of another cell, with that one's handler. */
void loop_move(struct warden *warden, struct watch *from, struct watch *to, struct cell *cell);
bool loop_has_input(int fd);
void loop_run(struct warden *warden);

/* order.c */
void cell_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count);
/* Makes a cold cell for the order that it has. */
void order_cold(struct warden *warden, struct cell *cell);
uint32_t order_namespaces(void);
/* The cell's group with these limits; 0, or -1 when the cell has failed for want of it. */
int order_group(struct warden *warden, struct cell *cell, const int64_t *limit);
/* Hears from now on when the kernel kills in the cell for want of memory. */
int order_watch_memory(struct warden *warden, struct cell *cell);
/* The order and its descriptors go from one cell to another. */
void order_move(struct warden *warden, struct cell *from, struct cell *to);

/* streams.c: the pipes between a program and the library */
int streams_open(struct cell *cell, bool value);
int streams_open_value(struct cell *cell);
/* The program has its ends; stdin's stays until the library has it too. */
void streams_given(struct cell *cell);
void streams_close(struct cell *cell);
/* Tells the library that the program runs, with its ends. */
void streams_started(struct cell *cell);
/* Now, whatever the order said. */
void streams_tell(struct cell *cell);

/* template.c */
struct template *template_get(struct warden *warden, char *const *etc, enum cell_step *step);
int template_fd(const struct template *template);
void template_close_all(struct warden *warden);

/* slot.c: a cell ahead of any order. 0, or -1 when it has failed. */
int slot_make(struct warden *warden, struct cell *cell);
void slot_prepared(struct warden *warden, struct cell *cell, const int *fds, size_t fd_count);
/* Lets whoever is to be the program come in; again when the zygote has become able to, or is given up. */
void slot_enter(struct warden *warden, struct cell *cell);
/* While it is made or dies: answers and programs go first. */
void slot_stand_back(struct cell *cell);
/* It is wanted now, or has stood back for long enough. */
void slot_come_forward(struct cell *cell);
/* When that is; UINT64_MAX for one that does not stand back. */
uint64_t slot_patience_ends(const struct cell *cell);

/* handover.c: what makes a waiting cell an order's */
int handover_plan(struct cell *cell, int plan_fd, const struct plan *plan, bool waits);
/* The order's plan to the program in a slot, or its code to the waiting interpreter; on failure the cell has failed. */
void handover_slot(struct warden *warden, struct cell *cell);
void handover_code(struct warden *warden, struct cell *cell);
/* Whether it fits into one message. */
bool handover_fits(const struct plan *plan);

/* offer.c: a waiting cell goes to the library ahead of any order, and is taken without asking */
int offer_make(struct warden *warden, struct cell *cell);
/* The library's word that it has. */
void offer_taken(struct warden *warden, struct cell *cell, const struct run_command *command);
/* Hears what was said of all that were offered. */
void offer_hear(struct warden *warden);
/* Sees whether it has been taken meanwhile: whoever acts on an offered cell has to know. */
void offer_settle(struct warden *warden, struct cell *cell);
/* The bell that the library rings; now ours. */
void offer_hang_bell(struct warden *warden, int bell);

/* pool.c */
void pool_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count);
void pool_warm(struct warden *warden, const struct order *order, int socket);
void pool_list(struct warden *warden, int socket);
/* Serves the order that `cell` holds from the plan's pool; false when there is none. */
bool pool_serve(struct warden *warden, struct cell *cell);
/* The cell is ready for an order, or has failed before it was, or is gone. */
void pool_cell_ready(struct warden *warden, struct cell *cell);
void pool_cell_failed(struct warden *warden, struct cell *cell, const char *text, int error);
void pool_tick(struct warden *warden, uint64_t now_us);
uint64_t pool_next_tick(const struct warden *warden);
/* A child that nobody watches will end soon. */
void pool_expect_stranger(struct warden *warden);
/* One may have ended already, untold. */
void pool_look_for_strangers(struct warden *warden);
/* The next orders may find nothing. */
bool pool_is_short(const struct warden *warden, const struct pool *pool);
/* When those who run one program after the other will have stopped, if nobody begins another. */
uint64_t pool_burst_ends(const struct warden *warden);
/* More cells than leave descriptors enough for runs to come. */
bool pool_wants_descriptors(const struct warden *warden);
/* More runs than processors. */
bool pool_is_crowded(const struct warden *warden);
void pool_close_all(struct warden *warden);

/* cell.c */
/* In the warden's list, every watch with its handler but no descriptor; NULL without memory. */
struct cell *cell_new(struct warden *warden);
void cell_tick(struct warden *warden, struct cell *cell, uint64_t now_us);
uint64_t cell_next_tick(const struct cell *cell);
void cell_kill(struct warden *warden, struct cell *cell, enum ending_cause cause);
void cell_fail(struct warden *warden, struct cell *cell, enum cell_step step, uint32_t detail, int error,
               const char *text);
/* Takes one word that the library has to say about it; false when there is none. */
bool cell_listen(struct warden *warden, struct cell *cell);
void cell_end_all(struct warden *warden);
void cell_running(struct warden *warden, struct cell *cell, uint64_t started_us);
/* The program says with which status it leaves, by the kernel's word. */
void cell_exiting(struct warden *warden, struct cell *cell, int status);

/* clear.c: after its end. Kills whoever is in it. */
void cell_kill_processes(struct cell *cell);
void cell_put_down(struct warden *warden, struct cell *cell);
/* Which has all it gets. */
void cell_leave_caller(struct warden *warden, struct cell *cell);
/* Whatever can be cleared away at this moment; `retry_us` tells when to look again. */
void cell_clear_away(struct warden *warden, struct cell *cell, uint64_t now_us);
/* Frees the cells that are gone for good. */
void cell_collect(struct warden *warden);

/* emptier.c. Whether the group of a cell without processes is being emptied: then it is removed later. */
bool emptier_takes(struct warden *warden, struct cell *cell);
void emptier_forget(struct warden *warden, const struct cell *cell);
void emptier_close(struct warden *warden);

/* maker.c. Has an init cloned for a slot; the cell is `being_made` until it is there. 0, or -1 with errno. */
int maker_order(struct warden *warden, struct cell *cell, enum cell_step *step);
/* Gives up whom it is making. The next order starts another. */
void maker_stop(struct warden *warden);

/* spawn.c: 0, or -1 with errno */
int spawn_init(struct warden *warden, struct cell *cell, enum cell_step *step);
int spawn_program(struct warden *warden, struct cell *cell, enum cell_step *step);
/* Does the work in a process that shares this one's memory and descriptors, and ends before this returns: it may go
 * where the warden could not come back from. What it clones with CLONE_PARENT is the warden's child. */
int spawn_helper(int (*work)(void *), void *context);
/* The same for a child of the warden: the process, and what it clones, are the warden's children. Its pid, or -1. */
pid_t spawn_sibling(int (*work)(void *), void *context);
/* A helper that changes ids or enters a user namespace closes the memory it shares to other processes; but the warden's
 * children must stay open to each other. */
void spawn_stay_open(void);
/* What an init and the warden hold of each other. */
int spawn_open_ends(struct cell *cell, int *ours, int *theirs, int *lifeline_read);
/* Init was cloned: its namespaces are in force. */
void spawn_set_controls(struct cell *cell);
#define SPAWN_TCP_BUFFER_BYTES (128 << 10)
/* Before programs that want all processors, where the user may: everybody's deadlines and answers wait for the warden.
 * What it forks has no precedence. */
void spawn_take_precedence(void);
/* In a child that works for the warden, if the warden has it. */
void spawn_keep_precedence(void);
/* Takes charge of a child that was cloned: its pidfd and the socket it reports on. */
int spawn_adopt(struct warden *warden, struct cell *cell, pid_t pid, int talk);
int spawn_talk_pair(int *ours, int *theirs);
/* Tells the program to join the cell's group. */
int spawn_join(const struct cell *cell);
/* The namespace the kernel refuses, tried one at a time; CONTROL_NONE when all can be had. */
enum control spawn_find_refused(uint32_t namespaces, int *error);

/* identity.c */
bool identity_may_administer(void); /* CAP_SYS_ADMIN in this user namespace */
/* CAP_SYS_RESOURCE, which containers often leave out: limits of a running process can then only go down. */
bool identity_may_raise_limits(void);
/* Whether the score by which the kernel chooses a victim, once raised, cannot be lowered by the cell. */
bool identity_sets_oom_floor(void);
/* Sets the cell's host uid; the first of its two ids. */
unsigned identity_ids(struct warden *warden, struct cell *cell);
int identity_write_maps(struct warden *warden, struct cell *cell);
/* Whether there are ids to give to cells at all: a user namespace may hold a single one. */
bool identity_has_ids(void);
/* The number of the process's user namespace; 0 when it cannot be told. */
uint64_t identity_user_namespace(int proc, pid_t pid);
/* The owner of all slots, on the host: nobody else, and without any right. Claimed before there are any. */
void identity_claim_owner(struct warden *warden);
uid_t identity_slot_owner(const struct warden *warden);
struct identity *identity_take(struct warden *warden);
/* The namespaces are there; takes them. */
void identity_made(struct warden *warden, struct identity *identity, int spaces[SLOT_IDENTITY]);
bool identity_stands(const struct identity *identity);
/* Its cell is gone. */
void identity_release(struct identity *identity, const struct cell *cell);
void identity_discard(struct identity *identity);
/* In a process that has entered its network: whether nothing was left in it. */
bool identity_is_clean(const struct warden *warden, const struct identity *identity);
void identity_close_all(struct warden *warden);
int identity_enter_own_userns(uid_t uid, gid_t gid);
/* A user namespace whose id map turns the caller's id into the program's, for idmapped mounts; its descriptor. */
int identity_mount_userns(struct warden *warden, const struct cell *cell);

/* mount_sources.c */
int mount_sources_resolve(struct warden *warden, struct cell *cell, const int *fds, size_t fd_count);
int mount_sources_idmap(struct warden *warden, struct cell *cell, uint32_t *detail);

/* notify.c */
void notify_prepare(int listener);
void notify_ready(struct warden *warden, struct cell *cell, uint32_t events);
/* The scout's part: what it is to read for the waiting call, and what came of it. */
struct scout_question notify_question(const struct cell *cell);
void notify_observed(struct warden *warden, struct cell *cell, const struct scout_answer *answer);
void notify_tick(struct warden *warden, struct cell *cell, uint64_t now_us);

/* account.c */
void account_final(struct cell *cell, struct usage *usage, uint64_t *oom_kills);
uint64_t account_cpu_us(struct cell *cell);
/* What was used up to here is the warden's own, not the program's. */
void account_begin(struct cell *cell);
/* Disk quotas seen full; without cgroup also memory, processes and CPU time, summed from /proc. */
void account_sample(struct warden *warden, struct cell *cell, uint64_t now_us);
void account_close(struct warden *warden, struct cell *cell);
void account_disk(struct cell *cell, struct usage *usage);

#endif
