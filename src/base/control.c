/* Owns the table of controls. */
#include "base/control.h"

#include <string.h>

static const struct {
    const char *name;
    const char *fix;
} controls[CONTROL_COUNT] = {
    [CONTROL_USERNS] = {"userns", "allow user namespaces: sysctl user.max_user_namespaces=10000 and, where it exists, "
                                  "kernel.unprivileged_userns_clone=1; on Ubuntu load packaging/apparmor/cordon"},
    [CONTROL_PIDNS] = {"pidns", "raise user.max_pid_namespaces"},
    [CONTROL_MOUNTNS] = {"mountns", "raise user.max_mnt_namespaces; in Docker add --security-opt "
                                    "systempaths=unconfined --security-opt seccomp=unconfined"},
    [CONTROL_NETNS] = {"netns", "raise user.max_net_namespaces"},
    [CONTROL_IPCNS] = {"ipcns", "raise user.max_ipc_namespaces"},
    [CONTROL_UTSNS] = {"utsns", "raise user.max_uts_namespaces"},
    [CONTROL_SECCOMP] = {"seccomp", "use a kernel with CONFIG_SECCOMP_FILTER"},
    [CONTROL_NO_NEW_PRIVS] = {"no_new_privs", "use Linux 3.5 or newer"},
    [CONTROL_CAPABILITIES] = {"capabilities", "let the caller drop capabilities"},
    [CONTROL_CGROUP] = {"cgroup", "run as root; or, on a host with systemd and cgroup v2, start the command with `sudo "
                                  "systemd-run --uid=$(id -u) -p Delegate=yes --same-dir --pipe --wait "
                                  "COMMAND`; or accept limits per process with --optional cgroup or "
                                  "CORDON_OPTIONAL=cgroup"},
    [CONTROL_LANDLOCK] = {"landlock", "use Linux 5.13 or newer with landlock in the lsm= list"},
    [CONTROL_CGROUPNS] = {"cgroupns", "raise user.max_cgroup_namespaces"},
    [CONTROL_DENIAL_REPORTS] = {"denial_reports", "use Linux 5.5 or newer, not under another seccomp listener"},
    [CONTROL_OWN_UID] = {"own_uid", "run as root, outside a user namespace with few ids"},
    [CONTROL_IO] = {"io", "run as root, with the cgroup controller io (v2) or blkio (v1) and /usr on a block device"},
    [CONTROL_OOM_FLOOR] = {"oom_floor", "run as root with CAP_SYS_RESOURCE, outside a user namespace"},
};

const char *control_name(enum control control)
{
    return control < CONTROL_COUNT ? controls[control].name : "none";
}

enum control control_from_name(const char *name)
{
    for (int i = 0; i < CONTROL_COUNT; i++)
        if (!strcmp(controls[i].name, name))
            return (enum control)i;
    return CONTROL_NONE;
}

const char *control_fix(enum control control)
{
    return control < CONTROL_COUNT ? controls[control].fix : "";
}
