/* Writes down in the store what has ended, in a thread, because the disk may not answer. */
#ifndef API_RECORDER_H
#define API_RECORDER_H

#include <cordon/error.h>
#include <stdint.h>

struct api;
struct execution;
struct recorder;

struct recorder *recorder_new(struct api *api);
/* Writes down what is left. No thread uses it any more. */
void recorder_free(struct recorder *recorder);

/* Takes a reference of the caller's. When the run is written down, or cannot be, kept_recorded() is called with it. */
void recorder_add(struct recorder *recorder, struct execution *execution);
/* CORDON_ESYSTEM while more waits to be written down than the daemon may hold: no run is begun then. */
int recorder_check(const struct recorder *recorder, cordon_error *err);

/* In the loop: names all that was added so far. */
uint64_t recorder_ticket(const struct recorder *recorder);
/* In a thread: waits a moment until that is in the store, for a question about it. */
void recorder_wait(struct recorder *recorder, uint64_t ticket);

#endif
