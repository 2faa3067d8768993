/* Per-process limits: the second net under the cgroup, and the first where there is none. */
#include <errno.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "cell/mutant.h"
#include "cell/steps.h"

#define DATA_ROOM ((rlim_t)1 << 30)

static rlim_t or_infinity(int64_t value)
{
    return value == LIMIT_UNLIMITED ? RLIM_INFINITY : (rlim_t)value;
}

/* Seconds for RLIMIT_CPU, beyond the limit: the warden's own accounting comes first and says why. The kernel counts
 * timer ticks for it, which on a crowded machine come to a fifth more than the time that was used. */
static rlim_t cpu_seconds(int64_t cpu_ms)
{
    return cpu_ms == LIMIT_UNLIMITED ? RLIM_INFINITY : (rlim_t)((cpu_ms + cpu_ms / 2 + 999) / 1000 + 1);
}

/* An ordinary caller may already be below what is wanted; limits only go down. */
static int lower(int resource, struct rlimit want)
{
    struct rlimit now;
    if (prlimit(0, (__rlimit_resource_t)resource, NULL, &now) < 0)
        return -1;
    want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    return prlimit(0, (__rlimit_resource_t)resource, &want, NULL);
}

int rlimits_apply(pid_t pid, const int64_t *limit, bool group_limits)
{
    /* With a pids group its counter is the verdict's witness, so the rlimit must not trip first. */
    rlim_t processes = (rlim_t)limit[LIMIT_PROCESSES] + (group_limits ? 16 : 1);
    rlim_t data = (rlim_t)limit[LIMIT_MEMORY_BYTES] + DATA_ROOM;
    struct {
        int resource;
        rlim_t soft, hard;
        bool off;
    } rows[] = {
        {RLIMIT_CORE, 0, 0, false},
        {RLIMIT_NOFILE, or_infinity(limit[LIMIT_OPEN_FILES]), or_infinity(limit[LIMIT_OPEN_FILES]), MUTANT(OPEN_FILES)},
        {RLIMIT_FSIZE, or_infinity(limit[LIMIT_FILE_BYTES]), or_infinity(limit[LIMIT_FILE_BYTES]), MUTANT(FILE_SIZE)},
        {RLIMIT_NPROC, processes, processes, MUTANT(PROCESSES)},
        {RLIMIT_CPU, cpu_seconds(limit[LIMIT_CPU_MS]), cpu_seconds(limit[LIMIT_CPU_MS]) + 2, MUTANT(CPU)},
        {RLIMIT_STACK, 8 << 20, or_infinity(limit[LIMIT_MEMORY_BYTES]), false},
        {RLIMIT_SIGPENDING, 1024, 1024, false},
        {RLIMIT_MSGQUEUE, 819200, 819200, false},
        {RLIMIT_MEMLOCK, 8 << 20, 8 << 20, false},
        {RLIMIT_NICE, 0, 0, false},
        {RLIMIT_RTPRIO, 0, 0, false},
        /* A net under the warden's samples. RLIMIT_AS would kill node and java at start; data counts thread stacks in
         * full, of which java has many, so it needs room beyond what is really used. */
        {RLIMIT_DATA, data, data, group_limits || MUTANT(MEMORY)},
    };
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].off)
            continue;
        struct rlimit want = {.rlim_cur = rows[i].soft, .rlim_max = rows[i].hard};
        if (want.rlim_cur > want.rlim_max)
            want.rlim_cur = want.rlim_max;
        if (prlimit(pid, (__rlimit_resource_t)rows[i].resource, &want, NULL) == 0)
            continue;
        if (errno != EPERM || pid != 0 || lower(rows[i].resource, want) < 0)
            return -1;
    }
    return 0;
}
