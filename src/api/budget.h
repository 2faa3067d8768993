/* What the daemon may hold for its callers: bytes of memory, and calls that stay open. Each kind of thing has a part of
 * the whole, so that no kind can take the room of another, and each caller at most a part of that, so that no caller
 * can take the room of the others. One thread. */
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
/* Every hold has ended. */
void budget_free(struct budget *budget);

const char *budget_name(enum budget_kind kind);
/* What all callers together, or one of them, may hold of a kind; what is held. */
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
/* Changes how much. Less is always allowed; what holds nothing cannot hold more. */
bool hold_resize(struct hold *hold, uint64_t amount, struct budget_refusal *refusal);
/* What exists already is counted, allowed or not. */
void hold_count(struct hold *hold, enum budget_kind kind, uint64_t amount);
void hold_end(struct hold *hold);

/* What is there to be evicted for: 0 when all callers together are within their part, or how much too much is held. */
uint64_t budget_excess(const struct budget *budget, enum budget_kind kind);
/* The caller that holds most of a kind, "" when no caller holds any. */
const char *budget_largest(const struct budget *budget, enum budget_kind kind);

#endif
