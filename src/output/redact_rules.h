/* Rules, compiled: what redactors of many runs share. */
#ifndef OUTPUT_REDACT_RULES_H
#define OUTPUT_REDACT_RULES_H

#include <hs/hs.h>
#include <stdatomic.h>

#include "output/redact.h"
#include "output/redact_literals.h"
#include "output/redact_shape.h"

#define REDACT_RULES_MAX 128
/* How much of a match, without its repeated end, is replaced at most; what a stream may hold back. */
#define REDACT_LONGEST     256
#define REDACT_LONGEST_MAX 16384
/* What is replaced after a BEGIN line whose END line does not come. */
#define REDACT_BLOCK_MAX 16384
/* Of the operator's values. */
#define REDACT_SECRETS_MAX 65536
/* The same of one request. A secret takes some 500 times its size in memory, in all its forms; with a larger bound a
 * request costs the daemon more time before it is admitted, with a smaller one a request can bring fewer keys. */
#define REQUEST_SECRETS_MAX 8192

enum redact_class { REDACT_SECRET, REDACT_PRIVATE, REDACT_CLASSES };
/* BEGIN: what follows belongs to the match until the END. */
enum redact_role { REDACT_MATCH, REDACT_BEGIN, REDACT_END };

struct redact_row {
    const char *name;
    enum redact_class class;
    const char *pattern; /* NULL: known values */
    const char *replace;
    unsigned longest; /* 0: REDACT_LONGEST */
    enum redact_role role;
};

struct redact_rule {
    struct redact_row row; /* texts are owned by the rules where they are an operator's */
    struct shape shape;
    unsigned longest;
    bool wide;        /* a head may be longer than `longest`: its last bytes are replaced */
    const char *file; /* operator's; borrowed while rules are opened */
    unsigned line;
};

struct redact_rules {
    atomic_uint references; /* the owner's, and one for each redactor */
    struct redact_rule rules[REDACT_RULES_MAX];
    size_t count;
    size_t own_count;                         /* the first ones, built in */
    hs_database_t *databases[REDACT_CLASSES]; /* NULL: no rule of the class */
    hs_scratch_t *scratch;                    /* to clone from */
    struct literals *literals;                /* the operator's values, or NULL */
};

struct rule_set {
    uint64_t bits[REDACT_RULES_MAX / 64];
};

static inline bool rule_set_has(const struct rule_set *set, size_t rule)
{
    return set->bits[rule / 64] >> rule % 64 & 1;
}

static inline void rule_set_add(struct rule_set *set, size_t rule)
{
    set->bits[rule / 64] |= UINT64_C(1) << rule % 64;
}

static inline void rule_set_remove(struct rule_set *set, size_t rule)
{
    set->bits[rule / 64] &= ~(UINT64_C(1) << rule % 64);
}

/* The built-in rules; the first stands for known values. */
extern const struct redact_row redact_table[];
extern const size_t redact_table_count;
extern const char *const redact_class_names[REDACT_CLASSES];

/* Adds one rule; an error has no place in it. `file` and `line` are kept for errors of compiling. */
int redact_rules_add(struct redact_rules *rules, const struct redact_row *row, const char *file, unsigned line,
                     cordon_error *err);
/* Adds an operator's file. */
int redact_rules_read(struct redact_rules *rules, const char *path, cordon_error *err);

#endif
