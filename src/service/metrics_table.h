/* What the daemon has counted. Inside metrics*.c only, which hold its lock. Every set of labels is bounded: a name
 * beyond the bound is counted as "other", because label values may come from programs and callers. */
#ifndef SERVICE_METRICS_TABLE_H
#define SERVICE_METRICS_TABLE_H

#include <stdint.h>

#include "service/metrics.h"

#define NAMES_MAX   64
#define NAME_LENGTH 64
#define HTTP_MAX    1024
#define BUCKETS     18

/* Index 0 is "other". */
struct names {
    char name[NAMES_MAX + 1][NAME_LENGTH];
    unsigned count; /* beside "other" */
};

struct histogram {
    uint64_t bucket[BUCKETS + 1]; /* not cumulative; the last is what was longer than every bound */
    uint64_t sum_us;
};

enum phase { PHASE_QUEUE, PHASE_START, PHASE_RUN, PHASE_FINISH, PHASE_COUNT };

#define STATUS_COUNT 15 /* with "other" */
#define METHOD_COUNT 8
#define KIND_COUNT   4

struct http_count {
    unsigned method, route;
    int status;
    uint64_t count;
};

struct counts {
    struct names languages, denied, rules, routes, reasons;
    uint64_t runs[NAMES_MAX + 1][STATUS_COUNT];
    uint64_t cpu_us[NAMES_MAX + 1];
    struct histogram phases[PHASE_COUNT];
    uint64_t denials[KIND_COUNT][NAMES_MAX + 1];
    uint64_t redactions[NAMES_MAX + 1];
    uint64_t output_bytes[2];
    struct http_count http[HTTP_MAX];
    unsigned http_used;
    struct histogram http_time[NAMES_MAX + 1];
    uint64_t refused[NAMES_MAX + 1];
    uint64_t unrecorded;
};

extern const char *const metrics_statuses[STATUS_COUNT];
extern const char *const metrics_methods[METHOD_COUNT];
extern const char *const metrics_kinds[KIND_COUNT];
extern const uint64_t metrics_bounds_us[BUCKETS];

void metrics_write(const struct counts *counts, const struct metrics_now *now, struct buf *out);

#endif
