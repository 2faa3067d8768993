/* Owns the adding up. Called where the library takes a cell's end from the warden, and by whoever joins accounts. */
#include "engine/account.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/result.h"

static void add_denial(struct account *account, const char *kind, const char *what, uint64_t count)
{
    struct account_denial *row = account->denials, *end = row + account->denial_count;
    account->denied += count;
    while (row < end && (strcmp(row->kind, kind) != 0 || strcmp(row->what, what) != 0))
        row++;
    if (row == end && account->denial_count == ACCOUNT_DENIALS_MAX)
        return;
    if (row == end) {
        account->denial_count++;
        *row = (struct account_denial){0};
        snprintf(row->kind, sizeof row->kind, "%s", kind);
        snprintf(row->what, sizeof row->what, "%s", what);
    }
    row->count += count;
}

static void take_times(struct account *account, const struct account *from)
{
    account->programs += from->programs;
    account->queue_us = from->queue_us;
    account->start_us = from->start_us;
    account->run_us = from->run_us;
    account->finish_us = from->finish_us;
}

void account_cell(struct account *account, const struct outcome *outcome, int is_program)
{
    const struct account times = {.programs = 1,
                                  .queue_us = account->queue_us,
                                  .start_us = outcome->start_us,
                                  .run_us = outcome->run_us,
                                  .finish_us = outcome->finish_us};
    account->cells++;
    account->cpu_us += outcome->usage.cpu_user_us + outcome->usage.cpu_system_us;
    for (int i = 0; i < 2; i++)
        account->output_bytes[i] += outcome->out_total[i];
    for (size_t i = 0; i < outcome->denial_count; i++)
        add_denial(account, outcome->denials[i].kind, outcome->denials[i].what, outcome->denials[i].count);
    if (is_program)
        take_times(account, &times);
}

void account_add(struct account *account, const struct account *other)
{
    uint64_t listed = 0;
    account->cells += other->cells;
    account->cpu_us += other->cpu_us;
    for (int i = 0; i < 2; i++)
        account->output_bytes[i] += other->output_bytes[i];
    for (size_t i = 0; i < other->denial_count; i++) {
        add_denial(account, other->denials[i].kind, other->denials[i].what, other->denials[i].count);
        listed += other->denials[i].count;
    }
    account->denied += other->denied - listed;
    if (other->programs)
        take_times(account, other);
}

double account_cpu_ms(const struct account *account)
{
    return (double)account->cpu_us / 1000;
}
