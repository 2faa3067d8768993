/* The limits of a run: one table of names, units and profiles. Pure. */
#ifndef PLAN_LIMITS_H
#define PLAN_LIMITS_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stdint.h>

enum limit {
    LIMIT_WALL_MS,
    LIMIT_CPU_MS,
    LIMIT_CPUS, /* in thousandths of a processor */
    LIMIT_MEMORY_BYTES,
    LIMIT_PROCESSES,
    LIMIT_DISK_BYTES,
    LIMIT_INODES,
    LIMIT_OPEN_FILES,
    LIMIT_FILE_BYTES,
    LIMIT_OUTPUT_BYTES,
    LIMIT_COUNT
};

#define LIMIT_UNLIMITED INT64_MAX

struct limits {
    int64_t value[LIMIT_COUNT];
    uint32_t given; /* bit per limit that the request itself set */
};

enum limit_kind { LIMIT_KIND_TIME, LIMIT_KIND_SHARE, LIMIT_KIND_BYTES, LIMIT_KIND_COUNT };

const char *limit_name(enum limit limit); /* "wall_ms", …: the JSON field */
enum limit_kind limit_kind(enum limit limit);
/* LIMIT_COUNT when there is no such limit. */
enum limit limit_from_name(const char *name);

/* Reads "5s", "512m", "unlimited" into limits->value[limit] and marks it given. Zero is an error. */
int limit_parse(enum limit limit, const char *text, struct limits *limits, cordon_error *err);
/* The same for a plain number in the limit's JSON unit (cpus: processors). */
int limit_set_number(enum limit limit, double number, struct limits *limits, cordon_error *err);

/* Fills what was not given from the profile ("lightweight", "standard", "heavy"; NULL is standard), then checks the
 * limits against each other: disk above memory is an error when given, and lowered to half the memory otherwise. */
int limits_complete(struct limits *limits, const char *profile, cordon_error *err);
/* The limits of a compile step. */
void limits_for_compile(struct limits *limits);

#endif
