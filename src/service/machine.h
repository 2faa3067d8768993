/* How much memory this process and its children may have. */
#ifndef SERVICE_MACHINE_H
#define SERVICE_MACHINE_H

#include <stdint.h>

/* Bytes: the machine's memory, or the smallest limit of the control groups that this process is in. */
uint64_t machine_memory(void);

#endif
