/* The bound on the memory and on the open calls that the daemon holds for its callers. Each kind of thing has a part of
 * the whole, so that no kind can take the room of another. Each caller may hold at most a share of each part, so that
 * no caller can take the room of the others. Only the loop's thread may use a budget. */
#ifndef API_BUDGET_H
#define API_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum budget_kind {
    BUDGET_BODIES,      /* of requests that are being read */
    BUDGET_REQUESTS,    /* that were accepted, until their run ends */
    BUDGET_OUTPUT,      /* of runs under way, as far as they may print, and then what it came to */
    BUDGET_ANSWERS,     /* that are being sent, and what those who follow a run have not read yet */
    BUDGET_KEPT,        /* results of runs that ended */
    BUDGET_BATCHES,     /* their requests and their lists of runs */
    BUDGET_IDEMPOTENCY, /* Idempotency-Keys */
    BUDGET_CALLS,       /* calls that wait or follow, each on its connection; a number, not bytes */
    BUDGET_COUNT
};

struct budget;
struct budget_account;

struct budget_options {
    uint64_t bytes; /* of all kinds together */
    uint64_t calls;
};

/* Something that is held. Zeroed when it holds nothing. */
struct hold {
    struct budget_account *account;
    enum budget_kind kind;
    uint64_t amount;
};

/* Why something may not be held. */
struct budget_refusal {
    const char *name; /* of the budget: "output" */
    bool of_all;      /* the part of all callers is used up; otherwise this caller's */
    bool never;       /* it is more than the caller may ever have */
    bool counted;     /* the amounts are numbers and not bytes */
    uint64_t wanted, most;
};

struct budget *budget_new(const struct budget_options *options);
/* The caller has ended every hold before. */
void budget_free(struct budget *budget);

const char *budget_name(enum budget_kind kind);
/* Limits: of all callers together, and of one caller. Amounts that are held: by all callers, and by one caller. */
uint64_t budget_most(const struct budget *budget, enum budget_kind kind);
uint64_t budget_most_each(const struct budget *budget, enum budget_kind kind);
uint64_t budget_held(const struct budget *budget, enum budget_kind kind);
uint64_t budget_held_by(const struct budget *budget, const char *caller, enum budget_kind kind);

/* Whether the caller may hold so much more; `refusal` tells why not. */
bool budget_allows(const struct budget *budget, const char *caller, enum budget_kind kind, uint64_t amount,
                   struct budget_refusal *refusal);
/* Holds it, if it is allowed. `hold` must hold nothing. False also when memory is out. */
bool budget_hold(struct budget *budget, const char *caller, enum budget_kind kind, uint64_t amount, struct hold *hold,
                 struct budget_refusal *refusal);
/* Changes the amount of a hold. A smaller amount is always allowed; a hold without an account can hold nothing. */
bool hold_resize(struct hold *hold, uint64_t amount, struct budget_refusal *refusal);
/* Sets kind and amount of a hold for something that exists already, also beyond the limits. */
void hold_count(struct hold *hold, enum budget_kind kind, uint64_t amount);
void hold_end(struct hold *hold);

/* By how much all callers together hold more of a kind than its part; 0 when they hold no more. */
uint64_t budget_excess(const struct budget *budget, enum budget_kind kind);
/* The caller that holds most of a kind, "" when no caller holds any. */
const char *budget_largest(const struct budget *budget, enum budget_kind kind);

#endif
