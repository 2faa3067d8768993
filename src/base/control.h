/* The controls: the only names in `optional`, `enforced`, errors and doctor. */
#ifndef BASE_CONTROL_H
#define BASE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

enum control {
    CONTROL_USERNS,
    CONTROL_PIDNS,
    CONTROL_MOUNTNS,
    CONTROL_NETNS,
    CONTROL_IPCNS,
    CONTROL_UTSNS,
    CONTROL_SECCOMP,
    CONTROL_NO_NEW_PRIVS,
    CONTROL_CAPABILITIES,
    CONTROL_CGROUP,
    CONTROL_LANDLOCK,
    CONTROL_CGROUPNS,
    CONTROL_DENIAL_REPORTS,
    CONTROL_OWN_UID,
    CONTROL_IO,
    CONTROL_OOM_FLOOR,
    CONTROL_COUNT,
    CONTROL_NONE = CONTROL_COUNT
};

#define CONTROL_BIT(control) (UINT32_C(1) << (control))
/* Those without which a `container` cell is refused. */
#define CONTROLS_REQUIRED (CONTROL_BIT(CONTROL_LANDLOCK) - 1)

const char *control_name(enum control control);
/* CONTROL_NONE when there is no such control. */
enum control control_from_name(const char *name);
/* What to do when the control is missing: one sentence. */
const char *control_fix(enum control control);

#endif
