/* The warden: the only process that makes cells. Single-threaded; makes, watches, kills, accounts, gives verdicts. It
 * never reads what a program prints, and never opens a path that a program could have made.
 *
 * Life of a cell:  order → init cloned, id maps; program cloned; control group made and limited, both told to join it →
 * init makes the network and lets the program go on, the program builds the root (PREPARED) and gives up its rights
 * (READY: restrictions are in force) → exec → running → ended (verdict sent) → both reaped, group removed → gone. */
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

enum cell_phase { PHASE_STARTING, PHASE_RUNNING, PHASE_ENDED };

struct cell {
    struct cell *next, **link;
    enum cell_phase phase;
    struct plan plan;
    struct cell_mount mounts[PLAN_MOUNT_MAX];
    int mount_fds[PLAN_MOUNT_MAX];
    int stdio[4];
    struct watch run;       /* the library's end: commands, or end of file */
    struct watch init_talk; /* records from init */
    struct watch talk;      /* records from the program; end of file is a successful exec */
    struct watch init;      /* pidfd */
    struct watch program;   /* pidfd */
    struct watch listener;  /* seccomp notifications */
    struct watch oom;       /* v1 eventfd, v2 memory.events */
    pid_t init_pid, program_pid;
    int lifeline; /* write end; init has the other */
    int gate;     /* read end for the program; init writes when the network stands */
    int work_fd;
    struct cgroup cgroup;
    uint32_t namespaces;
    uint32_t controls;
    uid_t uid;
    bool program_ready; /* restrictions are in force; exec is next */
    bool gone;          /* nothing of it is left; freed at the end of the round */
    struct ending ending;
    uint64_t accepted_us, started_us, ended_us;
    uint64_t wall_deadline_us, next_check_us, retry_us;
    struct sample {
        uint64_t memory_bytes, processes, cpu_us;
    } sampled_peak;     /* only without cgroup */
    struct watch count; /* an exact count of its memory is being made by a process of its own */
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
    struct wire_denial denials[DENIALS_MAX];
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

struct warden {
    struct scout scout;
    int epoll;
    struct watch engine;
    struct cell *cells;
    struct cgroup_root cgroups;
    bool rootless; /* one id only: the caller's own */
    bool leaving;
    bool swept;      /* what dead wardens left is removed */
    bool late_group; /* the cgroup is looked for at the first order */
    uid_t uid;       /* the caller's, as the host knows it */
    gid_t gid;
    int own_pid_ns;
    int proc; /* /proc, for the settings of new networks */
    unsigned next_number;
    long processors;
    /* Set when the warden itself cannot work: every order is answered with it. */
    struct event_failed broken;
};

/* serve.c */
int warden_serve(struct warden *warden);

/* loop.c */
int loop_watch(struct warden *warden, struct watch *watch, int fd, struct cell *cell,
               void (*ready)(struct warden *, struct cell *, uint32_t));
/* Also wakes on POLLPRI, as v2's memory.events does. */
void loop_watch_priority(struct warden *warden, struct watch *watch);
void loop_rearm(struct warden *warden, struct watch *watch, bool on);
void loop_forget(struct warden *warden, struct watch *watch); /* closes the descriptor */
bool loop_has_input(int fd);
void loop_run(struct warden *warden);

/* order.c */
void cell_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count);
/* cell.c */
/* In the warden's list, every watch with its handler but no descriptor; NULL without memory. */
struct cell *cell_new(struct warden *warden);
void cell_tick(struct warden *warden, struct cell *cell, uint64_t now_us);
uint64_t cell_next_tick(const struct cell *cell);
void cell_kill(struct warden *warden, struct cell *cell, enum ending_cause cause);
void cell_fail(struct warden *warden, struct cell *cell, enum cell_step step, uint32_t detail, int error,
               const char *text);
void cell_end_all(struct warden *warden);
/* Frees the cells that are gone for good. */
void cell_collect(struct warden *warden);

/* spawn.c: 0, or -1 with errno */
int spawn_init(struct warden *warden, struct cell *cell, enum cell_step *step);
int spawn_program(struct warden *warden, struct cell *cell, enum cell_step *step);
/* Tells both to join the cell's group; the program gets the request's mounts with it. */
int spawn_join(struct warden *warden, struct cell *cell, enum cell_step *step, uint32_t *detail);
/* The namespace the kernel refuses, tried one at a time; CONTROL_NONE when all can be had. */
enum control spawn_find_refused(uint32_t namespaces, int *error);

/* identity.c */
bool identity_may_administer(void); /* CAP_SYS_ADMIN in this user namespace */
int identity_write_maps(struct warden *warden, struct cell *cell);
/* Whether there are ids to give to cells at all: a user namespace may hold a single one. */
bool identity_has_ids(void);
int identity_enter_own_userns(uid_t uid, gid_t gid);
/* A user namespace whose id map turns the caller's id into the program's, for idmapped mounts; its descriptor. */
int identity_mount_userns(struct warden *warden, const struct cell *cell);

/* mount_sources.c */
int mount_sources_resolve(struct warden *warden, struct cell *cell, const int *fds, size_t fd_count);
int mount_sources_idmap(struct warden *warden, struct cell *cell, uint32_t *detail);

/* notify.c */
void notify_ready(struct warden *warden, struct cell *cell, uint32_t events);
/* The scout's part: what it is to read for the waiting call, and what came of it. */
struct scout_question notify_question(const struct cell *cell);
void notify_observed(struct warden *warden, struct cell *cell, const struct scout_answer *answer);
void notify_tick(struct warden *warden, struct cell *cell, uint64_t now_us);

/* account.c */
void account_final(struct cell *cell, struct usage *usage, uint64_t *oom_kills);
uint64_t account_cpu_us(struct cell *cell);
/* Disk quotas seen full; without cgroup also memory, processes and CPU time, summed from /proc. */
void account_sample(struct warden *warden, struct cell *cell, uint64_t now_us);
void account_close(struct warden *warden, struct cell *cell);
void account_disk(struct cell *cell, struct usage *usage);

#endif
