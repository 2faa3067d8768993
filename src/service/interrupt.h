/* Ctrl-C for commands that have much to do: the first asks them to come to an end, the second ends them. */
#ifndef SERVICE_INTERRUPT_H
#define SERVICE_INTERRUPT_H

#include <stdatomic.h>

/* Becomes true with the first SIGINT, SIGTERM or SIGHUP. */
extern atomic_bool interrupted;

/* For whoever asks whether to go on; takes no context. */
int interrupt_is_absent(void *context);

/* Catches them, but not those that the caller ignores. */
void interrupt_catch(void);

#endif
