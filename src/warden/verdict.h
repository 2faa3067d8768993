/* From what the kernel said to the status in the result. Pure. */
#ifndef WARDEN_VERDICT_H
#define WARDEN_VERDICT_H

#include <cordon/result.h>
#include <stdbool.h>
#include <stdint.h>

/* Why the warden killed a cell; ENDING_SELF when the program ended by itself. */
enum ending_cause {
    ENDING_SELF,
    ENDING_WALL,
    ENDING_CPU,
    ENDING_MEMORY,
    ENDING_OUTPUT,
    ENDING_DENIED,
    ENDING_CANCELLED,
};

struct ending {
    enum ending_cause cause;
    bool exited; /* the kernel reported exit_code or signal for the program itself */
    int exit_code;
    int signal;
};

struct verdict {
    cordon_status status;
    int exit_code; /* -1 unless the program itself exited */
    int signal;
};

/* `oom_kills`: of the cell's group, during the run. `hits`: enum limit_hit. */
struct verdict verdict_of(const struct ending *ending, uint64_t oom_kills, uint32_t hits);

#endif
