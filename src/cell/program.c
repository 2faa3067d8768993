/* The program's process, from clone to user code: enter the cell, build its root if it is a cold one, give up every
 * right, run. The order matters: what needs a capability comes before the capabilities go, and the system call filter
 * comes last. */
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

/* The network namespace is init's to make, and comes through the gate when it stands. */
static int enter_network(int gate, uint32_t namespaces)
{
    auto_close int network = wait_for_fd(gate);
    return namespaces & CLONE_NEWNET ? setns(network, CLONE_NEWNET) : 0;
}

/* Whoever is in the cell's control group sees it as the root of all. */
static void hide_group(uint32_t *controls)
{
    if (!MUTANT(CGROUPNS) && unshare(CLONE_NEWCGROUP) == 0)
        *controls |= CONTROL_BIT(CONTROL_CGROUPNS);
}

/* The warden was started with default signals and changed only this one. */
static void reset_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &standard, NULL);
}

/* The file tree: begun at once, finished when the control group that its contents are charged to stands and the request
 * is there. */
static void make_root(const struct program_setup *setup, int report, struct handover_message *handover,
                      struct plan *plan, int streams[STREAM_COUNT])
{
    enum cell_step step;
    uint32_t detail = 0;
    int mount_fds[PLAN_MOUNT_MAX];
    int root_fd = root_begin(&step);
    if (root_fd < 0)
        report_fail(report, step, 0);
    wait_to_join(report);
    wait_for_handover(report, handover, plan, streams, mount_fds);
    auto_close int work = root_finish(root_fd, plan, setup->mounts, mount_fds, handover->mount_count, &step, &detail);
    close(root_fd);
    if (work < 0)
        report_fail(report, step, detail);
    const struct cell_report prepared = {.kind = REPORT_PREPARED};
    if (report_send(report, &prepared, work) < 0)
        _exit(127);
}

/* Once the root stands: what no request changes of the way down, and a slot does before it waits for one. */
static void prepare_restrictions(int report, struct landlock *landlock)
{
    if (identity_lock() < 0)
        report_fail(report, STEP_CAPABILITIES, 0);
    if (landlock_prepare(landlock) < 0)
        report_fail(report, STEP_LANDLOCK, 0);
}

/* From the root of the cell's user namespace, with every right there, to its user without any. */
static void give_up_rights(bool own_ids, int report, uint32_t *controls)
{
    if (identity_become(CELL_UID, own_ids) < 0)
        report_fail(report, STEP_IDENTITY, 1);
    if (identity_drop_capabilities() < 0)
        report_fail(report, STEP_CAPABILITIES, 1);
    *controls |= CONTROL_BIT(CONTROL_CAPABILITIES);
    umask(022);
    if (MUTANT(NO_NEW_PRIVS))
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        report_fail(report, STEP_NO_NEW_PRIVS, 0);
    *controls |= CONTROL_BIT(CONTROL_NO_NEW_PRIVS);
}

/* Changing ids without exec takes both away. There is no secret in here to hide from the program itself. */
static void stay_bound(int report)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        report_fail(report, STEP_IDENTITY, 2);
}

/* What remains reachable is fenced a second time, and the filter comes last. Tells what is in force. */
static void restrict_and_report(struct landlock *landlock, const struct plan_mount *mounts, size_t mount_count,
                                int report, struct cell_report *ready)
{
    if (landlock->ruleset >= 0)
        ready->controls |= CONTROL_BIT(CONTROL_LANDLOCK);
    if (landlock_apply(landlock, mounts, mount_count) < 0)
        report_fail(report, STEP_LANDLOCK, 1);
    int listener = -1;
    bool holds_still = false, writable = false;
    for (size_t i = 0; i < mount_count; i++)
        writable |= mounts[i].writable;
    if (seccomp_apply(writable, &listener, &holds_still) < 0)
        report_fail(report, STEP_SECCOMP, 0);
    if (!MUTANT(SECCOMP))
        ready->controls |= CONTROL_BIT(CONTROL_SECCOMP);
    if (listener >= 0)
        ready->controls |= CONTROL_BIT(CONTROL_DENIAL_REPORTS);
    ready->holds_still = holds_still;
    ready->now_us = clock_us();
    if (report_send(report, ready, listener) < 0)
        _exit(127);
    if (listener >= 0)
        close(listener); /* whoever holds it could answer its own calls */
}

/* A clone of the warden: nothing of it may stay, in descriptors or otherwise. */
static void leave_warden(const struct program_setup *setup)
{
    const int needed[] = {setup->report, setup->init_pidfd, setup->gate};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!MUTANT(CLOSE_FDS) && descriptors_keep(needed, ARRAY_LEN(needed)) < 0)
        report_fail(setup->report, STEP_STDIO, 1);
    identity_volunteer_for_oom();
    identity_new_keyring();
    setsid();
    reset_signals();
    personality(PER_LINUX);
}

/* Of a confined slot, before user code: what is in force was told before. */
static void report_ready(int report, struct cell_report *ready)
{
    ready->kind = REPORT_READY;
    ready->now_us = clock_us();
    if (report_send(report, ready, -1) < 0)
        _exit(127);
}

/* The request is there: from here to user code. Every right is, too, unless the slot was confined. */
static _Noreturn void run(const struct program_setup *setup, int report, const struct handover_message *handover,
                          const struct plan *plan, const int streams[STREAM_COUNT], struct landlock *landlock,
                          struct cell_report *ready)
{
    uint32_t detail = 0;
    int *kept[] = {&report, &landlock->ruleset};
    if (streams_connect(streams, handover->waits ? report : -1, kept, ARRAY_LEN(kept)) < 0)
        report_fail(report, STEP_STDIO, 0);
    if (!setup->confined)
        give_up_rights(setup->own_ids, report, &ready->controls);
    if (files_write(plan, &detail) < 0)
        report_fail(report, STEP_FILES, detail);
    if (chdir("/work") < 0)
        report_fail(report, STEP_FILES, UINT32_MAX);
    /* Not before: the disk's quota, not a signal for a file too long, tells of program files that do not fit. */
    if (rlimits_apply(0, plan->limit, setup->group_limits) < 0)
        report_fail(report, STEP_RLIMITS, 0);
    if (!setup->confined)
        restrict_and_report(landlock, plan->mounts, plan->mount_count, report, ready);
    else
        report_ready(report, ready);
    for (char *const *path = plan->candidates; *path; path++) {
        execve(*path, plan->argv, MUTANT(ENVIRONMENT) ? environ : plan->envp);
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    report_fail(report, STEP_EXEC, 0);
}

_Noreturn void cell_program_main(const struct program_setup *setup)
{
    int report = setup->report, streams[STREAM_COUNT];
    struct cell_report ready = {.kind = REPORT_READY};
    struct handover_message handover;
    struct landlock landlock;
    struct plan plan;

    leave_warden(setup);
    /* The clone itself entered the pid namespace. */
    uint32_t early = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    if (setns(setup->init_pidfd, (int)(setup->namespaces & early)) < 0)
        report_fail(report, STEP_ENTER, 0);
    if (identity_become(setup->own_ids ? 0 : CELL_UID, setup->own_ids) < 0)
        report_fail(report, STEP_IDENTITY, 0);
    make_root(setup, report, &handover, &plan, streams);
    hide_group(&ready.controls);
    if (enter_network(setup->gate, setup->namespaces) < 0)
        report_fail(report, STEP_ENTER, 1);
    prepare_restrictions(report, &landlock);
    run(setup, report, &handover, &plan, streams, &landlock, &ready);
}

_Noreturn void cell_slot_program_main(const struct program_setup *setup)
{
    int report = setup->report, streams[STREAM_COUNT], mount_fds[PLAN_MOUNT_MAX];
    struct cell_report ready = {.kind = REPORT_READY};
    struct handover_message handover;
    struct landlock landlock;
    struct plan plan;
    uint32_t detail = 0;

    leave_warden(setup);
    wait_to_join(report);
    /* All at once: from within the user namespace init could not be looked into any more. */
    if (setns(setup->init_pidfd, (int)(setup->namespaces & ~(uint32_t)CLONE_NEWPID)) < 0)
        report_fail(report, STEP_ENTER, 0);
    hide_group(&ready.controls);
    if (identity_become(setup->own_ids ? 0 : CELL_UID, setup->own_ids) < 0)
        report_fail(report, STEP_IDENTITY, 0);
    prepare_restrictions(report, &landlock);
    if (setup->confined) {
        ready.kind = REPORT_CONFINED;
        give_up_rights(setup->own_ids, report, &ready.controls);
        stay_bound(report);
        restrict_and_report(&landlock, NULL, 0, report, &ready);
    }

    wait_for_handover(report, &handover, &plan, streams, mount_fds);
    if (plan.mount_count && root_place_mounts(&plan, mount_fds, &detail) < 0)
        report_fail(report, STEP_REQUEST_MOUNT, detail);
    run(setup, report, &handover, &plan, streams, &landlock, &ready);
}

/* Namespaces that the fork itself did not enter. */
static void enter_slot(const int *namespaces, int report)
{
    static const struct {
        enum slot_namespace which;
        int flag;
    } rows[] = {{SLOT_NET, CLONE_NEWNET}, {SLOT_MNT, CLONE_NEWNS}, {SLOT_IPC, CLONE_NEWIPC}, {SLOT_UTS, CLONE_NEWUTS}};
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        if (setns(namespaces[rows[i].which], rows[i].flag) < 0)
            report_fail(report, STEP_ENTER, i);
}

void cell_forked_main(const struct enter_message *message, int *fds)
{
    struct cell_report ready = {.kind = REPORT_READY};
    const int *namespaces = fds, *cgroup_files = fds + SLOT_NAMESPACES, *given = cgroup_files + message->cgroup_files;
    unsigned stream_count = message->has_value ? STREAM_COUNT : STREAM_VALUE;
    int streams[STREAM_COUNT] = {given[STREAM_IN], given[STREAM_OUT], given[STREAM_ERR],
                                 message->has_value ? given[STREAM_VALUE] : -1};
    int report = given[stream_count];

    if (!message->into_cgroup && cgroup_join(cgroup_files, message->cgroup_files) < 0)
        report_fail(report, STEP_CGROUP_JOIN, 0);
    identity_new_keyring();
    setsid();
    enter_slot(namespaces, report);
    hide_group(&ready.controls);
    int *kept[] = {&report};
    if (streams_connect(streams, report, kept, ARRAY_LEN(kept)) < 0)
        report_fail(report, STEP_STDIO, 0);
    report = CELL_HANDOVER_FD;
    if (close_range(CELL_HANDOVER_FD + 1, ~0U, 0) < 0)
        report_fail(report, STEP_STDIO, 1);
    struct landlock landlock;
    prepare_restrictions(report, &landlock);
    give_up_rights(message->own_ids, report, &ready.controls);
    if (chdir("/work") < 0)
        report_fail(report, STEP_FILES, UINT32_MAX);
    if (rlimits_apply(0, message->limit, message->group_limits) < 0)
        report_fail(report, STEP_RLIMITS, 0);
    stay_bound(report);
    restrict_and_report(&landlock, NULL, 0, report, &ready);
}
