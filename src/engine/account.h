/* What the cells of one request used and were refused, added up from the warden's counters: every cell counts, compile
 * steps, test cases, checkers and interactors included. Quotas, the ledger and metrics read this account and never a
 * Result's JSON. Pure. */
#ifndef ENGINE_ACCOUNT_H
#define ENGINE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

struct outcome;

/* Rows of refused calls; calls beyond them are counted in `denied` alone. */
#define ACCOUNT_DENIALS_MAX 64

struct account_denial {
    char kind[12];
    char what[96]; /* "connect(93.184.216.34:80)" */
    uint64_t count;
};

struct account {
    uint64_t cells;
    uint64_t cpu_us;
    uint64_t output_bytes[2];
    uint64_t denied;
    struct account_denial denials[ACCOUNT_DENIALS_MAX];
    size_t denial_count;
    /* Of the last program that ran; `programs` is 0 when there was none. */
    uint64_t programs, queue_us, start_us, run_us, finish_us;
};

/* A cell has ended. `is_program`: it was no compile step, so that its times count. */
void account_cell(struct account *account, const struct outcome *outcome, int is_program);
/* Adds another account. */
void account_add(struct account *account, const struct account *other);
double account_cpu_ms(const struct account *account);

#endif
