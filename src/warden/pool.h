/* A pool: cells that wait for runs of one kind. Filled in the background, sized by demand, drained when idle. */
#ifndef WARDEN_POOL_H
#define WARDEN_POOL_H

#include "warden/warden.h"

/* PROVING: its first child runs the pool's check. */
enum zygote_state { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_PROVING, ZYGOTE_SERVING, ZYGOTE_GIVEN_UP };

/* A started interpreter that forks waiting ones; see src/zygote. */
struct zygote {
    enum zygote_state state;
    pid_t pid;
    struct watch watch; /* its socket */
    int noise;          /* what it prints: only looked at when it fails */
    uint64_t started_us, patience_us, checked_us;
    unsigned forks;                  /* since it started */
    unsigned bad_children;           /* that did not come to wait, in a row */
    unsigned started;                /* how often one was */
    unsigned failures;               /* in a row */
    struct timespec program_changed; /* of its interpreter, when it started */
};

struct pool_counts {
    unsigned ready, filling, offered;
    struct cell *oldest_ready, *oldest_warm, *oldest_filling; /* warm: ready, and waits with nothing left to do */
};

#define WAITERS_MAX 16

struct pool {
    struct pool *next;
    struct pool_counts counts; /* of cells without an order, when last counted */
    uint64_t key;
    enum pool_kind kind; /* POOL_FORKED may fall back to POOL_STARTED, */
    bool fork_only;      /* unless there is nothing to start */
    bool confined;       /* slots whose program can place no mounts any more */
    char name[32];
    struct plan plan; /* what waits */
    int plan_fd;
    struct plan zygote_plan;
    struct zygote zygote;
    unsigned target, floor;
    uint64_t served, missed, failed;
    uint64_t used_us;    /* the last order */
    uint64_t shrink_us;  /* when the target may fall next */
    uint64_t retry_us;   /* after a failure */
    uint64_t cell_bytes; /* of one waiting cell, as last seen */
    char text[200];      /* the last failure */
    struct pool_waiter {
        int socket; /* -1: free */
        unsigned count;
    } waiters[WAITERS_MAX]; /* who waits for so many cells */
};

/* zygote.c */
void zygote_start(struct warden *warden, struct pool *pool);
void zygote_stop(struct warden *warden, struct pool *pool);
int zygote_fork(const struct warden *warden, struct pool *pool, struct cell *cell);
/* The check that a child of it ran has ended. */
void zygote_proved(struct warden *warden, struct pool *pool, bool good);
/* A child of it did not come to wait. */
void zygote_failed_child(struct warden *warden, struct pool *pool, bool answered);
/* Sees to one that grew old, has changed on disk, or does not answer. */
void zygote_tick(struct warden *warden, struct pool *pool, uint64_t now_us);
/* Children that a dying zygote left without a word. */
void zygote_reap_strangers(struct warden *warden);

#endif
