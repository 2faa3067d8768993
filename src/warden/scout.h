/* The scout: a process beside the warden that looks into programs' memory for it. Reading another process's memory
 * waits for a lock that the process itself may hold for as long as it likes; the warden, which keeps everybody's
 * deadlines, must never wait for a program. A scout that does not come back in time is replaced. */
#ifndef WARDEN_SCOUT_H
#define WARDEN_SCOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SCOUT_BYTES 32

struct warden;
struct cell;

struct scout_question {
    int32_t pid;
    uint64_t address;
    uint32_t length; /* at most SCOUT_BYTES */
};

struct scout_answer {
    int32_t length; /* bytes read, or -1 */
    char bytes[SCOUT_BYTES];
};

/* Sends the next waiting cell's question, if the scout is free. */
void scout_serve(struct warden *warden);
void scout_tick(struct warden *warden, uint64_t now_us);
uint64_t scout_next_tick(const struct warden *warden);
/* The cell is going away: whatever comes back for it is dropped. */
void scout_forget(struct warden *warden, const struct cell *cell);
bool scout_owns(const struct warden *warden, pid_t pid);
void scout_close(struct warden *warden);

#endif
