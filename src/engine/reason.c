/* The one line that tells people and models why a program ended: the cause, the limit and its value, what to change. */
#include <cordon/result.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "engine/result.h"

static void put_limit(struct buf *text, const struct outcome *outcome, enum limit limit)
{
    char number[48];
    int64_t value = outcome->limits.value[limit];
    switch (limit_kind(limit)) {
    case LIMIT_KIND_TIME:
        buf_puts(text, units_format_ms(value, number, sizeof number));
        break;
    case LIMIT_KIND_BYTES:
        buf_puts(text, units_format_bytes(value, number, sizeof number));
        break;
    default:
        buf_printf(text, "%lld", (long long)value);
    }
}

static void put_ending(struct buf *text, const struct outcome *outcome)
{
    const char *name = outcome->signal ? sigabbrev_np(outcome->signal) : NULL;
    if (name)
        buf_printf(text, "ended by signal %d (SIG%s)", outcome->signal, name);
    else if (outcome->signal)
        buf_printf(text, "ended by signal %d", outcome->signal);
    else
        buf_printf(text, "exited with %d", outcome->exit_code);
}

static void put_memory(struct buf *text, const struct outcome *outcome)
{
    char used[48];
    buf_puts(text, "out of memory at the ");
    put_limit(text, outcome, LIMIT_MEMORY_BYTES);
    buf_puts(text, " memory limit");
    if (outcome->usage.disk_bytes > (uint64_t)outcome->limits.value[LIMIT_MEMORY_BYTES] / 4)
        buf_printf(text, " (files in /work, /tmp and /dev/shm held %s of it)",
                   units_format_bytes((int64_t)outcome->usage.disk_bytes, used, sizeof used));
    buf_puts(text, "; raise limits.memory_bytes");
}

static void put_disk(struct buf *text, const struct outcome *outcome)
{
    put_ending(text, outcome);
    if (outcome->hits & HIT_INODES) {
        buf_puts(text, " with the file count full at the ");
        put_limit(text, outcome, LIMIT_INODES);
        buf_puts(text, " inode limit; write fewer files or raise limits.inodes");
    } else if (outcome->hits & HIT_FILE_BYTES) {
        buf_puts(text, ": a file met the ");
        put_limit(text, outcome, LIMIT_FILE_BYTES);
        buf_puts(text, " file size limit; raise limits.file_bytes");
    } else {
        buf_puts(text, " with the disk full at the ");
        put_limit(text, outcome, LIMIT_DISK_BYTES);
        buf_puts(text, " disk limit; write less or raise limits.disk_bytes");
    }
}

static void put_time(struct buf *text, const struct outcome *outcome, enum limit limit, const char *kind, double ran_s)
{
    buf_puts(text, "stopped at the ");
    put_limit(text, outcome, limit);
    buf_printf(text, " %s limit (%s %.3f s); raise limits.%s", kind, limit == LIMIT_CPU_MS ? "used" : "ran", ran_s,
               limit_name(limit));
}

static void put_denied(struct buf *text, const struct outcome *outcome)
{
    const struct denial *last = outcome->denial_count ? &outcome->denials[outcome->denial_count - 1] : NULL;
    buf_printf(text, "killed by the policy for %s", last ? last->what : "a forbidden call");
    if (last && *last->hint)
        buf_printf(text, ": %s", last->hint);
}

char *reason_text(const struct outcome *outcome, const char *step)
{
    struct buf text = {0};
    const struct usage *usage = &outcome->usage;
    if (outcome->status == CORDON_STATUS_OK)
        return NULL;
    buf_puts(&text, step);
    switch (outcome->status) {
    case CORDON_STATUS_OK:
    case CORDON_STATUS_NONZERO_EXIT:
    case CORDON_STATUS_SIGNALED:
    case CORDON_STATUS_COMPILE_ERROR:
        put_ending(&text, outcome);
        if (outcome->denial_count)
            buf_printf(&text, "; %s was denied", outcome->denials[0].what);
        break;
    case CORDON_STATUS_WALL_LIMIT:
        put_time(&text, outcome, LIMIT_WALL_MS, "wall", (double)usage->wall_us / 1e6);
        break;
    case CORDON_STATUS_CPU_LIMIT:
        put_time(&text, outcome, LIMIT_CPU_MS, "CPU", (double)(usage->cpu_user_us + usage->cpu_system_us) / 1e6);
        break;
    case CORDON_STATUS_MEMORY_LIMIT:
        put_memory(&text, outcome);
        break;
    case CORDON_STATUS_PROCESS_LIMIT:
        put_ending(&text, outcome);
        buf_puts(&text, " after meeting the ");
        put_limit(&text, outcome, LIMIT_PROCESSES);
        buf_puts(&text, " process limit; start fewer processes and threads or raise limits.processes");
        break;
    case CORDON_STATUS_DISK_LIMIT:
        put_disk(&text, outcome);
        break;
    case CORDON_STATUS_OUTPUT_LIMIT:
        buf_puts(&text, "stopped at the ");
        put_limit(&text, outcome, LIMIT_OUTPUT_BYTES);
        buf_puts(&text, " output limit; print less or raise limits.output_bytes");
        break;
    case CORDON_STATUS_DENIED:
        put_denied(&text, outcome);
        break;
    case CORDON_STATUS_CANCELLED:
        buf_puts(&text, "cancelled by the caller");
        break;
    case CORDON_STATUS_REJECTED:
    case CORDON_STATUS_INTERNAL_ERROR:
        break;
    }
    if (text.failed)
        buf_free(&text);
    return text.data;
}

void reason_add_memory(char **reason, const struct outcome *outcome)
{
    struct buf text = {0};
    if (!*reason || outcome->limits.value[LIMIT_MEMORY_BYTES] == LIMIT_UNLIMITED)
        return;
    buf_printf(&text, "%s; by its messages it ran out of memory, within the ", *reason);
    put_limit(&text, outcome, LIMIT_MEMORY_BYTES);
    buf_puts(&text, " memory limit; raise limits.memory_bytes");
    if (text.failed) {
        buf_free(&text);
        return;
    }
    free(*reason);
    *reason = text.data;
}
