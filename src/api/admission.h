/* Decides which run starts next. Every caller has a lane. While no other caller waits, one caller may have every place.
 * Once another one waits, a free place goes to the lane that has the fewest runs under way, and no lane gets more than
 * a share of the places, so that a caller which floods waits for itself. Runs that may last long leave a quarter of the
 * places to others, because a place cannot be taken back. Places are bounded in number, in memory and in
 * processes over all cells together. One thread. */
#ifndef API_ADMISSION_H
#define API_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "service/loop.h"

struct admission;

struct admission_options {
    unsigned places;                  /* runs at a time */
    unsigned queue;                   /* that may wait */
    uint64_t wait_us;                 /* so long; then refused */
    uint64_t memory_bytes, processes; /* 0: no bound */
};

/* What may be had at once by one caller; 0: no bound. */
struct lane_limits {
    unsigned concurrent, per_minute;
};

struct job {
    struct job *next;
    struct lane *lane;
    uint64_t memory_bytes, processes; /* that it may use at most */
    uint64_t wall_us;                 /* how long it may last */
    uint64_t queued_us;
    bool placed;
    bool (*fits)(void *context); /* whether what it needs besides can be had now; NULL: always */
    void (*start)(void *context);
    void (*refused)(void *context); /* waited too long */
    void *context;
};

enum admitted { ADMITTED, ADMITTED_LATER, REFUSED_FULL, REFUSED_RATE, REFUSED_SIZE };

struct admission *admission_new(struct loop *loop, const struct admission_options *options);
void admission_free(struct admission *admission);
/* `caller` names the lane. When ADMITTED, start() has been called. *retry_s tells a refused one when to come back. */
enum admitted admission_ask(struct admission *admission, const char *caller, const struct lane_limits *limits,
                            struct job *job, unsigned *retry_s);
/* Its run has ended, or it does not want to wait any more. */
void admission_leave(struct admission *admission, struct job *job);
/* Something that jobs need besides has become free. */
void admission_look(struct admission *admission);
/* Nobody else is started. */
void admission_stop(struct admission *admission);
unsigned admission_running(const struct admission *admission);
unsigned admission_queued(const struct admission *admission);
uint64_t admission_memory(const struct admission *admission);

#endif
