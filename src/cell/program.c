/* The program's process, from clone to user code: enter the cell, build its root, give up every right, run. The order
 * matters: what needs a capability comes before the capabilities go, and the system call filter comes last. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cell/mutant.h"
#include "cell/steps.h"
#include "cell/sys.h"

/* The host's out-of-memory killer should take a cell before anything of the host's own, and a caller's protection (a
 * negative score) must not be inherited. */
static void volunteer_for_oom(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "500", 3);
}

/* Network and cgroup namespaces are init's to make; they come through the gate when they stand. */
static int enter_late(int gate, uint32_t namespaces, uint32_t *controls)
{
    int fds[2];
    wait_at_gate(gate, fds);
    if (namespaces & CLONE_NEWNET && setns(fds[0], CLONE_NEWNET) < 0)
        return -1;
    if (!MUTANT(CGROUPNS) && setns(fds[1], CLONE_NEWCGROUP) == 0)
        *controls |= CONTROL_BIT(CONTROL_CGROUPNS);
    close(fds[0]);
    close(fds[1]);
    return 0;
}

/* The warden was started with default signals and changed only this one. */
static void reset_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &standard, NULL);
}

/* Standard streams at 0..2 (and the value pipe at 3); everything else closes on exec, whoever opened it. */
static int connect_stdio(const int stdio[4], int *kept[], unsigned kept_count)
{
    /* Out of the way first, so that no dup2 lands on a descriptor still needed. */
    int high[4];
    for (int i = 0; i < 4; i++) {
        high[i] = stdio[i] < 0 ? -1 : fcntl(stdio[i], F_DUPFD_CLOEXEC, 4);
        if (stdio[i] >= 0 && high[i] < 0)
            return -1;
    }
    for (unsigned i = 0; i < kept_count; i++) {
        *kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, 4);
        if (*kept[i] < 0)
            return -1;
    }
    for (int i = 0; i < 4; i++)
        if (high[i] >= 0 && dup2(high[i], i) < 0)
            return -1;
    unsigned first = stdio[3] >= 0 ? 4 : 3;
    if (MUTANT(CLOSE_FDS))
        return 0;
    if (close_range(first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return 0;
    if (errno != ENOSYS && errno != EINVAL)
        return -1;
    for (int fd = (int)first; fd < 4096; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

/* The file tree: begun at once, finished when the control group that its contents are charged to stands. */
static void make_root(const struct program_setup *setup, int report)
{
    enum cell_step step;
    uint32_t detail = 0;
    int mount_fds[PLAN_MOUNT_MAX];
    size_t mount_fd_count = 0;
    int root_fd = root_begin(&step);
    if (root_fd < 0)
        report_fail(report, step, 0);
    wait_to_join(report, mount_fds, &mount_fd_count);
    auto_close int work = root_finish(setup, root_fd, mount_fds, mount_fd_count, &step, &detail);
    close(root_fd);
    if (work < 0)
        report_fail(report, step, detail);
    const struct cell_report prepared = {.kind = REPORT_PREPARED};
    if (report_send(report, &prepared, work) < 0)
        _exit(127);
}

/* From the root of the cell's user namespace, with every right there, to its user without any. */
static void give_up_rights(const struct program_setup *setup, int report, uint32_t *controls)
{
    if (identity_lock() < 0)
        report_fail(report, STEP_CAPABILITIES, 0);
    if (identity_become(CELL_UID, setup->own_ids) < 0)
        report_fail(report, STEP_IDENTITY, 1);
    if (identity_drop_capabilities() < 0)
        report_fail(report, STEP_CAPABILITIES, 1);
    *controls |= CONTROL_BIT(CONTROL_CAPABILITIES);
    if (MUTANT(NO_NEW_PRIVS))
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        report_fail(report, STEP_NO_NEW_PRIVS, 0);
    *controls |= CONTROL_BIT(CONTROL_NO_NEW_PRIVS);
}

/* What remains reachable is fenced a second time, and the filter comes last. Sends the READY record. */
static void restrict_and_report(const struct program_setup *setup, int report, struct cell_report *ready)
{
    bool landlocked = false;
    if (landlock_apply(setup, &landlocked) < 0)
        report_fail(report, STEP_LANDLOCK, 0);
    if (landlocked)
        ready->controls |= CONTROL_BIT(CONTROL_LANDLOCK);
    int listener = -1;
    if (seccomp_apply(&listener) < 0)
        report_fail(report, STEP_SECCOMP, 0);
    if (!MUTANT(SECCOMP))
        ready->controls |= CONTROL_BIT(CONTROL_SECCOMP);
    if (listener >= 0)
        ready->controls |= CONTROL_BIT(CONTROL_DENIAL_REPORTS);
    ready->now_us = clock_us();
    if (report_send(report, ready, listener) < 0)
        _exit(127);
    if (listener >= 0)
        close(listener); /* whoever holds it could answer its own calls */
}

_Noreturn void cell_program_main(const struct program_setup *setup)
{
    const struct plan *plan = setup->plan;
    int report = setup->report, init_pidfd = setup->init_pidfd, gate = setup->gate;
    int *kept[] = {&report, &init_pidfd, &gate};
    struct cell_report ready = {.kind = REPORT_READY};
    uint32_t detail = 0;

    int needed[7] = {report, init_pidfd, gate};
    memcpy(needed + 3, setup->stdio, sizeof setup->stdio);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!MUTANT(CLOSE_FDS) && descriptors_keep(needed, ARRAY_LEN(needed)) < 0)
        report_fail(report, STEP_STDIO, 1);
    volunteer_for_oom();
    identity_new_keyring();
    setsid();
    reset_signals();
    personality(PER_LINUX);
    if (connect_stdio(setup->stdio, kept, ARRAY_LEN(kept)) < 0)
        report_fail(report, STEP_STDIO, 0);

    /* The clone itself entered the pid namespace. */
    if (setns(init_pidfd, (int)(setup->namespaces & (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS))) < 0)
        report_fail(report, STEP_ENTER, 0);
    if (identity_become(setup->own_ids ? 0 : CELL_UID, setup->own_ids) < 0)
        report_fail(report, STEP_IDENTITY, 0);
    make_root(setup, report);
    if (enter_late(gate, setup->namespaces, &ready.controls) < 0)
        report_fail(report, STEP_ENTER, 1);

    give_up_rights(setup, report, &ready.controls);
    umask(022);
    if (files_write(plan, &detail) < 0)
        report_fail(report, STEP_FILES, detail);
    if (chdir("/work") < 0)
        report_fail(report, STEP_FILES, UINT32_MAX);
    /* Not before: the disk's quota, not a signal for a file too long, tells of program files that do not fit. */
    if (rlimits_apply(setup) < 0)
        report_fail(report, STEP_RLIMITS, 0);
    restrict_and_report(setup, report, &ready);

    for (char *const *path = plan->candidates; *path; path++) {
        execve(*path, plan->argv, MUTANT(ENVIRONMENT) ? environ : plan->envp);
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    report_fail(report, STEP_EXEC, 0);
}
