/* Init: pid 1 of the cell. Prepares the namespaces, then holds them. It runs no user code, keeps nothing of a request
 * in its memory (the plan is not copied into it), cannot be traced, and leaves when the warden does. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "cell/sys.h"

/* From here on init needs to read its lifeline and to leave; anything else would be an attacker's doing. */
static void lock_down(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(filter), .filter = filter};
    sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program);
}

static _Noreturn void hold(int lifeline)
{
    char byte;
    for (;;) {
        ssize_t n = read(lifeline, &byte, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            _exit(0);
    }
}

/* Waits for a message of the warden's; leaves when there is no warden any more. */
static void hear(int report, void *message, size_t size, int *fds, size_t *fd_count)
{
    size_t none = 0;
    ssize_t n = fd_receive(report, message, size, fds, fds ? PLAN_MOUNT_MAX : 0, fd_count ? fd_count : &none);
    if (n == 0)
        _exit(0);
    if (n != (ssize_t)size)
        report_fail(report, STEP_ID_MAPS, 0);
}

_Noreturn void cell_init_main(const struct slot_setup *setup)
{
    int needed[3 + CELL_CGROUP_FILES_MAX] = {setup->report, setup->lifeline, setup->gate};
    memcpy(needed + 3, setup->cgroup_files, sizeof setup->cgroup_files);
    prctl(PR_SET_NAME, "cordon-init");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (descriptors_keep(needed, ARRAY_LEN(needed)) < 0)
        report_fail(setup->report, STEP_STDIO, 0);
    if (cgroup_join(setup->cgroup_files) < 0)
        report_fail(setup->report, STEP_CGROUP_JOIN, 0);

    char go;
    hear(setup->report, &go, sizeof go, NULL, NULL);
    if (identity_become(setup->own_ids ? 0 : CELL_UID, setup->own_ids) < 0)
        report_fail(setup->report, STEP_IDENTITY, 0);
    /* Again, for an id change clears it; the lifeline covers a warden that died in between. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    identity_new_keyring();

    struct cell_report report = {.kind = REPORT_PREPARED};
    if (!MUTANT(CGROUPNS) && unshare(CLONE_NEWCGROUP) == 0)
        report.controls |= CONTROL_BIT(CONTROL_CGROUPNS);
    if (setup->namespaces & CLONE_NEWNET && network_loopback_up() < 0)
        report_fail(setup->report, STEP_LOOPBACK, 0);
    if (setup->namespaces & CLONE_NEWUTS && (sethostname("cordon", 6) < 0 || setdomainname("", 0) < 0))
        report_fail(setup->report, STEP_HOSTNAME, 0);

    enum cell_step step;
    uint32_t detail = 0;
    int root_fd = root_begin(setup, &step);
    if (root_fd < 0)
        report_fail(setup->report, step, 0);
    struct slot_order order;
    int mount_fds[PLAN_MOUNT_MAX];
    size_t mount_fd_count = 0;
    hear(setup->report, &order, sizeof order, mount_fds, &mount_fd_count);
    int work = root_finish(setup, &order, root_fd, mount_fds, (uint32_t)mount_fd_count, &step, &detail);
    if (work < 0)
        report_fail(setup->report, step, detail);

    if (prctl(PR_SET_DUMPABLE, MUTANT(INIT_HIDDEN) ? 1 : 0) < 0)
        report_fail(setup->report, STEP_IDENTITY, 1);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &ignore, NULL); /* orphans are reaped by the kernel */
    if (report_send(setup->report, &report, work) < 0 || write(setup->gate, "g", 1) != 1)
        _exit(1);
    /* The program must find nothing to reopen in /proc/1/fd even if init could be looked into. */
    descriptors_keep(&setup->lifeline, 1);
    identity_retire();
    lock_down();
    hold(setup->lifeline);
}
