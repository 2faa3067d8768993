/* What the child side tells the warden: one fixed-size record per event, over a SEQPACKET socket that exec closes. */
#ifndef CELL_REPORT_H
#define CELL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/control.h"

/* Every step between clone and user code. The name and the control it belongs to are in report.c. */
enum cell_step {
    STEP_NONE,
    STEP_CLONE,
    STEP_CGROUP_JOIN,
    STEP_ID_MAPS,
    STEP_IDENTITY,
    STEP_KEYRING,
    STEP_NETWORK,
    STEP_LOOPBACK,
    STEP_NETWORK_BUFFERS,
    STEP_HOSTNAME,
    STEP_PROPAGATION,
    STEP_ROOT,
    STEP_SYSTEM_FILES,
    STEP_ETC,
    STEP_DEVICES,
    STEP_PROC,
    STEP_PROC_MASKS,
    STEP_STORE,
    STEP_REQUEST_MOUNT,
    STEP_PIVOT,
    STEP_ENTER,
    STEP_RLIMITS,
    STEP_CAPABILITIES,
    STEP_NO_NEW_PRIVS,
    STEP_HANDOVER,
    STEP_FILES,
    STEP_STDIO,
    STEP_LANDLOCK,
    STEP_SECCOMP,
    STEP_REPORT,
    STEP_EXEC,
    STEP_COUNT
};

enum report_kind {
    REPORT_FAILED,   /* step, error, detail (which item of a list) */
    REPORT_PREPARED, /* the root stands; carries the work directory's descriptor, from a slot's init also namespaces */
    REPORT_CONFINED, /* from a slot's program: restrictions are in force ahead of any request; carries the listener */
    REPORT_READY     /* from the program: restrictions are in force, user code is next; carries the listener, if it was
                        not sent before */
};

struct cell_report {
    uint32_t kind;
    uint32_t step;
    int32_t error; /* errno */
    uint32_t detail;
    uint32_t controls;    /* CONTROL_BIT of those this process put in force */
    uint32_t holds_still; /* READY: no signal interrupts a call that the warden has received */
    uint64_t now_us;      /* READY: when it was sent, by the monotonic clock */
};

const char *cell_step_name(enum cell_step step);
enum control cell_step_control(enum cell_step step);

/* Sends the record, with a descriptor when fd >= 0; 0 or -1 with errno. */
int report_send(int socket, const struct cell_report *report, int fd);
/* Reports the failure with the current errno and ends the process. */
_Noreturn void report_fail(int socket, enum cell_step step, uint32_t detail);

#endif
