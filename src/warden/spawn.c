/* The two clones of a cell. Namespaces are made by the clone of init; the program is cloned into init's pid namespace
 * and is the warden's own child, so that its exit status comes from the kernel and from nowhere else. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/sys.h"
#include "warden/warden.h"

static const struct {
    uint64_t flag;
    enum control control;
} namespace_controls[] = {
    {CLONE_NEWUSER, CONTROL_USERNS}, {CLONE_NEWPID, CONTROL_PIDNS}, {CLONE_NEWNS, CONTROL_MOUNTNS},
    {CLONE_NEWNET, CONTROL_NETNS},   {CLONE_NEWIPC, CONTROL_IPCNS}, {CLONE_NEWUTS, CONTROL_UTSNS},
};

enum control spawn_find_refused(uint32_t namespaces, int *error)
{
    uint64_t base = namespaces & CLONE_NEWUSER;
    for (unsigned i = 0; i < ARRAY_LEN(namespace_controls); i++) {
        if (!(namespaces & namespace_controls[i].flag))
            continue;
        struct clone_args args = {.flags = base | namespace_controls[i].flag};
        pid_t pid = sys_clone3(&args, sizeof args);
        if (pid == 0)
            _exit(0);
        if (pid < 0) {
            *error = errno;
            return namespace_controls[i].control;
        }
        waitpid(pid, NULL, __WALL);
    }
    return CONTROL_NONE;
}

static void into_cgroup(const struct cell *cell, struct clone_args *args)
{
    if (cell->cgroup.kind != CGROUP_V2)
        return;
    args->flags |= CLONE_INTO_CGROUP;
    args->cgroup = (uint64_t)cell->cgroup.dirs[0];
}

static int talk_pair(int *ours, int *theirs)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    *ours = pair[0];
    *theirs = pair[1];
    return 0;
}

static void set_namespace_controls(struct cell *cell)
{
    for (unsigned i = 0; i < ARRAY_LEN(namespace_controls); i++)
        if (cell->namespaces & namespace_controls[i].flag)
            cell->controls |= CONTROL_BIT(namespace_controls[i].control);
}

int spawn_init(struct warden *warden, struct cell *cell, enum cell_step *step)
{
    auto_close int ours = -1, theirs = -1, lifeline_read = -1;
    int lifeline[2];
    *step = STEP_CLONE;
    if (talk_pair(&ours, &theirs) < 0 || pipe2(lifeline, O_CLOEXEC) < 0)
        return -1;
    lifeline_read = lifeline[0];
    cell->lifeline = lifeline[1];
    auto_close int gate = -1;
    if (talk_pair(&cell->gate, &gate) < 0)
        return -1;

    struct init_setup setup = {.report = theirs,
                               .lifeline = lifeline_read,
                               .gate = gate,
                               .proc = warden->proc,
                               .own_ids = !warden->rootless,
                               .namespaces = cell->namespaces,
                               .tcp_buffer_bytes = 128 << 10};
    int pidfd = -1;
    /* The network, the dearest of them, is made by init itself while the program builds the root. */
    struct clone_args args = {.flags = (cell->namespaces & ~(uint64_t)CLONE_NEWNET) | CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)&pidfd};
    into_cgroup(cell, &args);
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid < 0)
        return -1;
    if (pid == 0)
        cell_init_main(&setup);
    cell->init_pid = pid;
    if (loop_watch(warden, &cell->init, pidfd, cell, cell->init.ready) < 0 ||
        loop_watch(warden, &cell->init_talk, take_fd(&ours), cell, cell->init_talk.ready) < 0)
        return -1;
    set_namespace_controls(cell);

    *step = STEP_ID_MAPS;
    if (identity_write_maps(warden, cell) < 0)
        return -1;
    return fd_send(cell->init_talk.fd, "m", 1, NULL, 0);
}

int spawn_join(struct warden *warden, struct cell *cell, enum cell_step *step, uint32_t *detail)
{
    *step = STEP_REQUEST_MOUNT;
    if (mount_sources_idmap(warden, cell, detail) < 0)
        return -1;
    *step = STEP_CGROUP_JOIN;
    int fds[CELL_CGROUP_FILES_MAX + PLAN_MOUNT_MAX];
    struct join_message message = {0};
    while (message.cgroup_files < CELL_CGROUP_FILES_MAX && cell->cgroup.join_files[message.cgroup_files] >= 0) {
        fds[message.cgroup_files] = cell->cgroup.join_files[message.cgroup_files];
        message.cgroup_files++;
    }
    fds[message.cgroup_files] = cell->program.fd;
    if (fd_send(cell->init_talk.fd, &message, sizeof message, fds, message.cgroup_files + 1) < 0)
        return -1;
    size_t detached = warden->rootless ? 0 : cell->plan.mount_count;
    memcpy(fds + message.cgroup_files, cell->mount_fds, detached * sizeof *fds);
    return fd_send(cell->talk.fd, &message, sizeof message, fds, message.cgroup_files + detached);
}

static pid_t clone_program(const struct cell *cell, const struct program_setup *setup, uint64_t flags)
{
    struct clone_args args = {.flags = flags};
    into_cgroup(cell, &args);
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid == 0)
        cell_program_main(setup);
    return pid;
}

/* The warden's next child is born into the cell's pid namespace; afterwards the warden turns back to its own. */
static pid_t clone_directly(struct warden *warden, const struct cell *cell, const struct program_setup *setup)
{
    bool enter = cell->namespaces & CLONE_NEWPID;
    if (enter && setns(cell->init.fd, CLONE_NEWPID) < 0)
        return -1;
    pid_t pid = clone_program(cell, setup, 0);
    int saved = errno;
    if (enter && setns(warden->own_pid_ns, CLONE_NEWPID) < 0)
        _exit(1); /* a warden whose children land in a cell is of no use; the cells die with it */
    errno = saved;
    return pid;
}

/* An ordinary user's warden could not turn back, for its own pid namespace belongs to somebody else. A helper that
 * shares its memory enters instead; the program is still the warden's child (CLONE_PARENT). */
static __attribute__((noinline)) pid_t clone_through_helper(const struct cell *cell, const struct program_setup *setup)
{
    volatile pid_t pid = -1;
    volatile int error = 0;
    pid_t helper = vfork();
    if (helper < 0)
        return -1;
    if (helper == 0) {
        if (setns(cell->init.fd, CLONE_NEWPID) == 0)
            pid = clone_program(cell, setup, CLONE_PARENT);
        error = errno;
        _exit(0);
    }
    waitpid(helper, NULL, 0);
    errno = error;
    return pid;
}

int spawn_program(struct warden *warden, struct cell *cell, enum cell_step *step)
{
    auto_close int ours = -1, theirs = -1;
    *step = STEP_ENTER;
    if (talk_pair(&ours, &theirs) < 0)
        return -1;
    struct program_setup setup = {.report = theirs,
                                  .init_pidfd = cell->init.fd,
                                  .gate = cell->gate,
                                  .own_ids = !warden->rootless,
                                  .group_limits = warden->cgroups.kind != CGROUP_NONE,
                                  .namespaces = cell->namespaces,
                                  .plan = &cell->plan,
                                  .mounts = cell->mounts};
    memcpy(setup.stdio, cell->stdio, sizeof setup.stdio);

    /* Only this child may have a copy of the plan; see cell_order(). */
    madvise(cell->plan.mapping, cell->plan.mapping_size, MADV_DOFORK);
    pid_t pid = warden->rootless ? clone_through_helper(cell, &setup) : clone_directly(warden, cell, &setup);
    int saved = errno;
    madvise(cell->plan.mapping, cell->plan.mapping_size, MADV_DONTFORK);
    errno = saved;
    if (pid < 0)
        return -1;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* our own child, not reaped: the pid cannot name another */
    cell->program_pid = pid;
    if (loop_watch(warden, &cell->program, pidfd, cell, cell->program.ready) < 0)
        return -1;
    return loop_watch(warden, &cell->talk, take_fd(&ours), cell, cell->talk.ready);
}
