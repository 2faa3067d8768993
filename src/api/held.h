/* The daemon's budget as calls and runs use it: who a caller is there, and the answers for what it does not allow. */
#ifndef API_HELD_H
#define API_HELD_H

#include "api/api.h"
#include "api/budget.h"

/* Bytes of memory for each of limits.output_bytes. A run may print so many to each of two streams; while the result is
 * made, each is there as it was captured, as repaired text, as a JSON value, and as JSON, which needs six bytes for a
 * control character. 19 were measured for two streams of control characters. With a smaller number such runs may take
 * more memory than the budget says, with a larger one fewer runs fit. */
#define HELD_PER_OUTPUT_BYTE 24

/* What a run may leave behind for its result. */
struct held_parts {
    uint64_t output_bytes;
    bool collects, has_value, compiles;
};

/* Bytes of memory for all of it, at most. */
uint64_t held_cost(const struct held_parts *parts);

/* "anonymous", or the id of the caller's key. */
const char *held_name(const char *key);
int held_open(struct api *api, cordon_error *err);
/* Answers 413 for what can never be held, else 429. */
void answer_over_budget(struct call *call, const struct budget_refusal *why);
/* The same for a run of a batch, which nobody waits for. */
int error_over_budget(cordon_error *err, const struct budget_refusal *why);
/* Holds it, or answers and returns false. A hold that is there already changes its amount. */
bool held_take(struct call *call, enum budget_kind kind, uint64_t amount, struct hold *hold);

#endif
