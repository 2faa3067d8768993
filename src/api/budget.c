/* Owns the parts of the budget and the accounts of the callers. Pure: knows nothing of what is held. */
#include "api/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS     256
#define CALLER_SIZE 64

/* The parts in bytes add up to the whole. */
static const struct {
    const char *name;
    unsigned part; /* of the whole, in thousandths */
    unsigned each; /* of that part, in thousandths: what one caller may hold */
    bool counted;  /* a number of things, of which the whole is `calls` */
    bool one_fits; /* a caller that holds none may hold one however large, while nobody else does and there is room */
} kinds[BUDGET_COUNT] = {
    [BUDGET_BODIES] = {"bodies", 150, 500, false, false},
    [BUDGET_REQUESTS] = {"requests", 150, 500, false, false},
    [BUDGET_OUTPUT] = {"output", 450, 750, false, false},
    [BUDGET_ANSWERS] = {"answers", 100, 500, false, true},
    [BUDGET_KEPT] = {"kept runs", 90, 500, false, false},
    [BUDGET_BATCHES] = {"batches", 50, 500, false, false},
    [BUDGET_IDEMPOTENCY] = {"idempotency keys", 10, 250, false, false},
    [BUDGET_CALLS] = {"calls", 1000, 500, true, false},
};

struct budget_account {
    struct budget_account *next, **link;
    struct budget *budget;
    char caller[CALLER_SIZE];
    uint64_t held[BUDGET_COUNT];
    unsigned holds;
};

struct budget {
    struct budget_options options;
    uint64_t held[BUDGET_COUNT];
    uint64_t weight[BUDGET_COUNT]; /* of that, what each caller holds within its share: it counts against the others */
    struct budget_account *accounts[BUCKETS];
};

struct budget *budget_new(const struct budget_options *options)
{
    struct budget *budget = calloc(1, sizeof *budget);
    if (budget)
        budget->options = *options;
    return budget;
}

void budget_free(struct budget *budget)
{
    if (!budget)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        while (budget->accounts[i]) {
            struct budget_account *account = budget->accounts[i];
            budget->accounts[i] = account->next;
            free(account);
        }
    free(budget);
}

const char *budget_name(enum budget_kind kind)
{
    return kinds[kind].name;
}

uint64_t budget_most(const struct budget *budget, enum budget_kind kind)
{
    uint64_t whole = kinds[kind].counted ? budget->options.calls : budget->options.bytes;
    return whole / 1000 * kinds[kind].part + whole % 1000 * kinds[kind].part / 1000;
}

uint64_t budget_most_each(const struct budget *budget, enum budget_kind kind)
{
    uint64_t most = budget_most(budget, kind),
             each = most / 1000 * kinds[kind].each + most % 1000 * kinds[kind].each / 1000;
    return each ? each : most;
}

uint64_t budget_held(const struct budget *budget, enum budget_kind kind)
{
    return budget->held[kind];
}

/* Accounts */

static unsigned bucket_of(const char *caller)
{
    unsigned hash = 5381;
    for (; *caller; caller++)
        hash = hash * 33 + (unsigned char)*caller;
    return hash % BUCKETS;
}

static struct budget_account *find(const struct budget *budget, const char *caller)
{
    struct budget_account *account = budget->accounts[bucket_of(caller)];
    while (account && strncmp(account->caller, caller, CALLER_SIZE - 1) != 0)
        account = account->next;
    return account;
}

static struct budget_account *find_or_make(struct budget *budget, const char *caller)
{
    struct budget_account *account = find(budget, caller), **bucket = &budget->accounts[bucket_of(caller)];
    if (account || !(account = calloc(1, sizeof *account)))
        return account;
    snprintf(account->caller, sizeof account->caller, "%s", caller);
    account->budget = budget;
    account->next = *bucket;
    account->link = bucket;
    if (account->next)
        account->next->link = &account->next;
    *bucket = account;
    return account;
}

static void forget(struct budget_account *account)
{
    *account->link = account->next;
    if (account->next)
        account->next->link = account->link;
    free(account);
}

uint64_t budget_held_by(const struct budget *budget, const char *caller, enum budget_kind kind)
{
    const struct budget_account *account = find(budget, caller);
    return account ? account->held[kind] : 0;
}

/* Holding */

static bool refuse(const struct budget_refusal *why, struct budget_refusal *refusal)
{
    if (refusal)
        *refusal = *why;
    return false;
}

/* `own` is what the caller holds already. */
static bool allows(const struct budget *budget, enum budget_kind kind, uint64_t own, uint64_t amount,
                   struct budget_refusal *refusal)
{
    uint64_t all = budget->weight[kind], most = budget_most(budget, kind), each = budget_most_each(budget, kind);
    struct budget_refusal why = {
        .name = kinds[kind].name, .counted = kinds[kind].counted, .wanted = amount, .most = each};
    bool has_large = kinds[kind].one_fits && budget->held[kind] > all;
    if (kinds[kind].one_fits && !has_large && !own && all < most)
        return true;
    why.never = amount > each && !kinds[kind].one_fits;
    if (amount > each || own > each - amount)
        return refuse(&why, refusal);
    why.of_all = true;
    why.most = most;
    return all <= most && amount <= most - all ? true : refuse(&why, refusal);
}

bool budget_allows(const struct budget *budget, const char *caller, enum budget_kind kind, uint64_t amount,
                   struct budget_refusal *refusal)
{
    return allows(budget, kind, budget_held_by(budget, caller, kind), amount, refusal);
}

static uint64_t weight_of(const struct budget_account *account, enum budget_kind kind)
{
    uint64_t each = budget_most_each(account->budget, kind), held = account->held[kind];
    return kinds[kind].one_fits && held > each ? each : held;
}

static void set_amount(struct hold *hold, uint64_t amount)
{
    struct budget_account *account = hold->account;
    struct budget *budget = account->budget;
    uint64_t before = weight_of(account, hold->kind);
    account->held[hold->kind] += amount - hold->amount;
    budget->held[hold->kind] += amount - hold->amount;
    budget->weight[hold->kind] += weight_of(account, hold->kind) - before;
    hold->amount = amount;
}

bool budget_hold(struct budget *budget, const char *caller, enum budget_kind kind, uint64_t amount, struct hold *hold,
                 struct budget_refusal *refusal)
{
    if (!budget_allows(budget, caller, kind, amount, refusal))
        return false;
    struct budget_account *account = find_or_make(budget, caller);
    if (!account) {
        const struct budget_refusal why = {.name = kinds[kind].name, .of_all = true, .wanted = amount};
        return refuse(&why, refusal);
    }
    account->holds++;
    *hold = (struct hold){.account = account, .kind = kind};
    set_amount(hold, amount);
    return true;
}

bool hold_resize(struct hold *hold, uint64_t amount, struct budget_refusal *refusal)
{
    const struct budget_account *account = hold->account;
    if (!account)
        return !amount;
    if (amount > hold->amount &&
        !allows(account->budget, hold->kind, account->held[hold->kind], amount - hold->amount, refusal))
        return false;
    set_amount(hold, amount);
    return true;
}

void hold_count(struct hold *hold, enum budget_kind kind, uint64_t amount)
{
    if (!hold->account)
        return;
    set_amount(hold, 0);
    hold->kind = kind;
    set_amount(hold, amount);
}

void hold_end(struct hold *hold)
{
    struct budget_account *account = hold->account;
    if (!account)
        return;
    set_amount(hold, 0);
    if (--account->holds == 0)
        forget(account);
    *hold = (struct hold){0};
}

/* Evicting */

uint64_t budget_excess(const struct budget *budget, enum budget_kind kind)
{
    uint64_t most = budget_most(budget, kind);
    return budget->held[kind] > most ? budget->held[kind] - most : 0;
}

const char *budget_largest(const struct budget *budget, enum budget_kind kind)
{
    const struct budget_account *largest = NULL;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct budget_account *account = budget->accounts[i]; account; account = account->next)
            if (account->held[kind] && (!largest || account->held[kind] > largest->held[kind]))
                largest = account;
    return largest ? largest->caller : "";
}
