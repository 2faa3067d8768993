/* Owns how the budget is made from the settings, and the words for what it refuses. Called by every handler that makes
 * the daemon hold something. */
#include "api/held.h"

#include <stdio.h>

#include "base/error.h"
#include "base/units.h"
#include "output/collect.h"
#include "output/value.h"
#include "plan/limits.h"
#include "service/machine.h"
#include "service/metrics.h"

/* Less would not hold the output of one run of the standard profile. */
#define LEAST_BYTES ((uint64_t)128 << 20)
#define RETRY_S     "2"

static const char *const hints[BUDGET_COUNT] = {
    [BUDGET_BODIES] = "send a smaller request, or raise held_bytes",
    [BUDGET_REQUESTS] = "send a smaller request, or raise held_bytes",
    [BUDGET_OUTPUT] = "lower limits.output_bytes, or raise held_bytes",
    [BUDGET_ANSWERS] = "read the answers that are under way, or raise held_bytes",
    [BUDGET_KEPT] = "raise held_bytes",
    [BUDGET_BATCHES] = "send a smaller batch, wait for those under way, or raise held_bytes",
    [BUDGET_IDEMPOTENCY] = "send fewer Idempotency-Keys within ten minutes, or raise held_bytes",
    [BUDGET_CALLS] = "end calls that wait or follow, or raise connections",
};

const char *held_name(const char *key)
{
    return *key ? key : "anonymous";
}

uint64_t held_cost(const struct held_parts *parts)
{
    /* Files and a value are each there once, where output is there for two streams. */
    const uint64_t each = HELD_PER_OUTPUT_BYTE / 2;
    struct limits compile;
    uint64_t bytes = parts->output_bytes * HELD_PER_OUTPUT_BYTE;
    if (parts->collects)
        bytes += COLLECT_RESULT_BYTES_MAX * each;
    if (parts->has_value)
        bytes += VALUE_BYTES_MAX * each;
    if (parts->compiles) {
        limits_for_compile(&compile);
        bytes += (uint64_t)compile.value[LIMIT_OUTPUT_BYTES] * HELD_PER_OUTPUT_BYTE;
    }
    return bytes;
}

int held_open(struct api *api, cordon_error *err)
{
    const struct config *config = api->config;
    uint64_t bytes = config->held_bytes ? config->held_bytes : machine_memory() / 2;
    const struct budget_options options = {.bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes,
                                           .calls = config->connections};
    api->budget = budget_new(&options);
    return api->budget ? 0 : error_nomem(err);
}

static const char *amount_text(const struct budget_refusal *why, uint64_t amount, char text[40])
{
    if (why->counted)
        snprintf(text, 40, "%llu", (unsigned long long)amount);
    else
        units_format_bytes((int64_t)amount, text, 40);
    return text;
}

static const char *hint_of(const struct budget_refusal *why)
{
    for (int kind = 0; kind < BUDGET_COUNT; kind++)
        if (budget_name((enum budget_kind)kind) == why->name)
            return hints[kind];
    return "";
}

int error_over_budget(cordon_error *err, const struct budget_refusal *why)
{
    char wanted[40], most[40];
    amount_text(why, why->wanted, wanted);
    amount_text(why, why->most, most);
    if (why->never)
        error_set(err, CORDON_EINVAL, "budget",
                  "this needs %s of the daemon's budget for %s, of which one caller may have %s", wanted, why->name,
                  most);
    else
        error_set(err, CORDON_EINVAL, "budget",
                  "this needs %s more of the daemon's budget for %s, and what %s of %s is taken; try again in " RETRY_S
                  " s",
                  wanted, why->name, why->of_all ? "all callers together may have" : "one caller may have", most);
    return error_hint(err, "%s", hint_of(why));
}

void answer_over_budget(struct call *call, const struct budget_refusal *why)
{
    cordon_error err;
    error_over_budget(&err, why);
    metrics_refused("budget");
    if (!why->never)
        http_add_header(call->http, "Retry-After", RETRY_S);
    problem_budget(call->http, why->never ? 413 : 429, why->name, &err);
}

bool held_take(struct call *call, enum budget_kind kind, uint64_t amount, struct hold *hold)
{
    struct budget_refusal why;
    if (hold->account ? hold_resize(hold, amount, &why)
                      : budget_hold(call->api->budget, held_name(call->caller.key.id), kind, amount, hold, &why))
        return true;
    answer_over_budget(call, &why);
    return false;
}
