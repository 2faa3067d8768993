/* Owns the lanes and the places. */
#include "api/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* For so long after its last place a caller that had to wait still counts as company: a caller that asks for one run
 * after the other has none under way between two of them. With less, the flood beside it takes every place each time.
 */
#define COMPANY_US UINT64_C(1000000)
/* So long ago may the waiting be. With more, a single wait leaves places empty for longer. */
#define WAITED_US UINT64_C(10000000)
#define MINUTE_US UINT64_C(60000000)
/* A run that may last longer than this is long. With a larger value, callers may have to wait so long for the first
 * place that becomes free; with a smaller one, ordinary runs of one caller cannot have every place. */
#define LONG_US MINUTE_US

struct lane {
    struct lane *next;
    char caller[64];
    struct job *first, **last;
    unsigned queued, running;
    unsigned concurrent;
    uint64_t served_us; /* when it last got a place */
    uint64_t waited_us; /* when one of its runs last had to wait for a place */
    double tokens;      /* of its rate */
    uint64_t tokens_us;
};

struct admission {
    struct loop *loop;
    struct admission_options options;
    struct lane *lanes;
    struct loop_timer patience;
    unsigned running, queued;
    unsigned running_long; /* of those that run */
    uint64_t memory_bytes, processes;
    bool stopped, filling;
};

static void expire(void *context);

struct admission *admission_new(struct loop *loop, const struct admission_options *options)
{
    struct admission *admission = calloc(1, sizeof *admission);
    if (!admission)
        return NULL;
    admission->loop = loop;
    admission->options = *options;
    admission->patience = (struct loop_timer){.expired = expire, .context = admission};
    return admission;
}

void admission_free(struct admission *admission)
{
    if (!admission)
        return;
    loop_drop_timer(admission->loop, &admission->patience);
    while (admission->lanes) {
        struct lane *lane = admission->lanes;
        admission->lanes = lane->next;
        free(lane);
    }
    free(admission);
}

static struct lane *lane_for(struct admission *admission, const char *caller)
{
    struct lane **link = &admission->lanes;
    for (struct lane *lane; (lane = *link);) {
        if (!strcmp(lane->caller, caller))
            return lane;
        bool forgotten = !lane->running && !lane->queued && clock_us() - lane->served_us > 2 * MINUTE_US;
        if (forgotten) {
            *link = lane->next;
            free(lane);
        } else
            link = &lane->next;
    }
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    snprintf(lane->caller, sizeof lane->caller, "%s", caller);
    lane->last = &lane->first;
    lane->tokens = -1;
    lane->next = admission->lanes;
    admission->lanes = lane;
    return lane;
}

static bool take_token(struct lane *lane, unsigned per_minute, uint64_t now, unsigned *retry_s)
{
    if (!per_minute)
        return true;
    if (lane->tokens < 0)
        lane->tokens = per_minute;
    else
        lane->tokens += (double)(now - lane->tokens_us) * per_minute / (double)MINUTE_US;
    if (lane->tokens > per_minute)
        lane->tokens = per_minute;
    lane->tokens_us = now;
    if (lane->tokens < 1) {
        *retry_s = 1 + (unsigned)((1 - lane->tokens) * 60 / per_minute);
        return false;
    }
    lane->tokens -= 1;
    return true;
}

static bool is_company(const struct lane *lane, uint64_t now)
{
    if (lane->queued)
        return true;
    bool waited = lane->waited_us && now - lane->waited_us < WAITED_US;
    return waited && (lane->running || now - lane->served_us < COMPANY_US);
}

/* How many other callers are short of places: one of their runs waits, or had to wait a moment ago. */
static unsigned company_of(const struct admission *admission, const struct lane *lane)
{
    unsigned others = 0;
    uint64_t now = clock_us();
    for (const struct lane *other = admission->lanes; other; other = other->next)
        others += other != lane && is_company(other, now);
    return others;
}

/* In company nobody has more than half of the places, less one for each of the others: what runs beside a caller's one
 * run is what makes it slow. A quarter is left to him however many they are, or a trickle from many would stop him. */
static bool has_share(const struct admission *admission, const struct lane *lane)
{
    unsigned others = lane->running ? company_of(admission, lane) : 0, places = admission->options.places;
    unsigned half = places / 2, left_to_them = others < half / 2 ? others : half / 2;
    /* The last place is for a caller that has none. */
    return !others || (admission->running + 1 < places && lane->running + left_to_them < half);
}

static bool is_long(const struct job *job)
{
    return job->wall_us > LONG_US;
}

/* All long runs together have three quarters of the places, one at least. */
static bool leaves_places(const struct admission *admission, const struct job *job)
{
    unsigned most = admission->options.places - (admission->options.places + 3) / 4;
    return !is_long(job) || admission->running_long < (most ? most : 1);
}

static bool has_place(const struct admission *admission, const struct lane *lane, const struct job *job)
{
    const struct admission_options *options = &admission->options;
    if (admission->stopped || admission->running >= options->places ||
        (lane->concurrent && lane->running >= lane->concurrent))
        return false;
    if (!has_share(admission, lane) || !leaves_places(admission, job))
        return false;
    if (options->memory_bytes && admission->memory_bytes + job->memory_bytes > options->memory_bytes)
        return false;
    if (options->processes && admission->processes + job->processes > options->processes)
        return false;
    return !job->fits || job->fits(job->context);
}

static void place(struct admission *admission, struct job *job)
{
    struct lane *lane = job->lane;
    job->placed = true;
    lane->running++;
    lane->served_us = clock_us();
    admission->running++;
    admission->running_long += is_long(job);
    admission->memory_bytes += job->memory_bytes;
    admission->processes += job->processes;
    job->start(job->context);
}

static void unqueue(struct admission *admission, struct job *job)
{
    struct lane *lane = job->lane;
    for (struct job **link = &lane->first; *link; link = &(*link)->next)
        if (*link == job) {
            *link = job->next;
            if (lane->last == &job->next)
                lane->last = link;
            lane->queued--;
            admission->queued--;
            return;
        }
}

static bool comes_before(const struct lane *a, const struct lane *b)
{
    return !b || a->running < b->running || (a->running == b->running && a->served_us < b->served_us);
}

/* A run that cannot be started leaves at once, which leads here again: the outer call goes on for it. */
static void fill(struct admission *admission)
{
    if (admission->filling)
        return;
    admission->filling = true;
    for (;;) {
        struct lane *best = NULL;
        for (struct lane *lane = admission->lanes; lane; lane = lane->next)
            if (lane->first && has_place(admission, lane, lane->first) && comes_before(lane, best))
                best = lane;
        if (!best)
            break;
        struct job *job = best->first;
        unqueue(admission, job);
        place(admission, job);
    }
    admission->filling = false;
}

static void set_patience(struct admission *admission)
{
    uint64_t first = 0;
    for (const struct lane *lane = admission->lanes; lane; lane = lane->next)
        if (lane->first && (!first || lane->first->queued_us < first))
            first = lane->first->queued_us;
    loop_set_timer(admission->loop, &admission->patience, first ? first + admission->options.wait_us : 0);
}

static void expire(void *context)
{
    struct admission *admission = context;
    uint64_t now = clock_us();
    for (struct lane *lane = admission->lanes; lane; lane = lane->next)
        for (struct job *job; (job = lane->first) && now - job->queued_us >= admission->options.wait_us;) {
            unqueue(admission, job);
            job->refused(job->context);
        }
    set_patience(admission);
}

enum admitted admission_ask(struct admission *admission, const char *caller, const struct lane_limits *limits,
                            struct job *job, unsigned *retry_s)
{
    const struct admission_options *options = &admission->options;
    struct lane *lane = lane_for(admission, caller);
    uint64_t now = clock_us();
    *retry_s = 1;
    if ((options->memory_bytes && job->memory_bytes > options->memory_bytes) ||
        (options->processes && job->processes > options->processes))
        return REFUSED_SIZE;
    if (!lane)
        return REFUSED_FULL;
    lane->concurrent = limits->concurrent;
    if (!take_token(lane, limits->per_minute, now, retry_s))
        return REFUSED_RATE;
    job->lane = lane;
    job->queued_us = now;
    job->placed = false;
    job->next = NULL;
    if (!lane->first && has_place(admission, lane, job)) {
        place(admission, job);
        return ADMITTED;
    }
    /* Nobody may fill more than half of the queue. */
    if (admission->queued >= options->queue || (lane->queued && lane->queued >= options->queue / 2)) {
        *retry_s = 1 + admission->queued / 50;
        return REFUSED_FULL;
    }
    *lane->last = job;
    lane->last = &job->next;
    lane->queued++;
    lane->waited_us = now;
    admission->queued++;
    set_patience(admission);
    return ADMITTED_LATER;
}

void admission_leave(struct admission *admission, struct job *job)
{
    if (!job->lane)
        return;
    if (job->placed) {
        job->lane->running--;
        admission->running--;
        admission->running_long -= is_long(job);
        admission->memory_bytes -= job->memory_bytes;
        admission->processes -= job->processes;
    } else
        unqueue(admission, job);
    job->lane = NULL;
    job->placed = false;
    fill(admission);
    set_patience(admission);
}

void admission_look(struct admission *admission)
{
    fill(admission);
    set_patience(admission);
}

void admission_stop(struct admission *admission)
{
    admission->stopped = true;
}

unsigned admission_running(const struct admission *admission)
{
    return admission->running;
}

unsigned admission_queued(const struct admission *admission)
{
    return admission->queued;
}

uint64_t admission_memory(const struct admission *admission)
{
    return admission->memory_bytes;
}
