/* Owns the rule that turns causes and counters into one status. Called once per cell, at its end. */
#include "warden/verdict.h"

#include <signal.h>

#include "warden/protocol.h"

static const cordon_status status_of_cause[] = {
    [ENDING_WALL] = CORDON_STATUS_WALL_LIMIT,     [ENDING_CPU] = CORDON_STATUS_CPU_LIMIT,
    [ENDING_MEMORY] = CORDON_STATUS_MEMORY_LIMIT, [ENDING_OUTPUT] = CORDON_STATUS_OUTPUT_LIMIT,
    [ENDING_DENIED] = CORDON_STATUS_DENIED,       [ENDING_CANCELLED] = CORDON_STATUS_CANCELLED,
};

static cordon_status status_of_failure(const struct ending *ending, uint32_t hits)
{
    /* A program may raise the signal itself; the account is the witness. */
    if (ending->signal == SIGXCPU && hits & HIT_CPU)
        return CORDON_STATUS_CPU_LIMIT;
    if (hits & HIT_PROCESSES)
        return CORDON_STATUS_PROCESS_LIMIT;
    if (hits & (HIT_DISK_BYTES | HIT_INODES))
        return CORDON_STATUS_DISK_LIMIT;
    return ending->signal ? CORDON_STATUS_SIGNALED : CORDON_STATUS_NONZERO_EXIT;
}

struct verdict verdict_of(const struct ending *ending, uint64_t oom_kills, uint32_t hits)
{
    struct verdict verdict = {.exit_code = -1};
    if (ending->cause != ENDING_SELF) {
        verdict.status = status_of_cause[ending->cause];
        verdict.signal = SIGKILL;
        return verdict;
    }
    if (ending->signal)
        verdict.signal = ending->signal;
    else
        verdict.exit_code = ending->exit_code;
    /* Whatever the program made of it: the kernel took one of its processes for memory. */
    if (oom_kills > 0)
        verdict.status = CORDON_STATUS_MEMORY_LIMIT;
    else if (!ending->signal && ending->exit_code == 0)
        verdict.status = CORDON_STATUS_OK;
    else
        verdict.status = status_of_failure(ending, hits);
    return verdict;
}
