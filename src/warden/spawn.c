/* The two clones of a cell. Namespaces are made by the clone of init; the program is cloned into init's pid namespace
 * and is the warden's own child, so that its exit status comes from the kernel and from nowhere else. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/sys.h"
#include "warden/pool.h"

#define PRECEDENCE (-10)
#ifndef SCHED_FLAG_RESET_ON_FORK
#define SCHED_FLAG_RESET_ON_FORK 1
#endif

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

int spawn_talk_pair(int *ours, int *theirs)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    *ours = pair[0];
    *theirs = pair[1];
    return 0;
}

void spawn_stay_open(void)
{
    prctl(PR_SET_DUMPABLE, 1);
}

static bool precedence;

static bool step_ahead(void)
{
    const struct sched_attr {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {
        .size = sizeof attributes, .policy = SCHED_OTHER, .flags = SCHED_FLAG_RESET_ON_FORK, .nice = PRECEDENCE};
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

void spawn_take_precedence(void)
{
    /* A caller who steps back does so with all that is his. */
    precedence = getpriority(PRIO_PROCESS, 0) == 0 && step_ahead();
}

struct help {
    int (*work)(void *);
    void *context;
};

void spawn_keep_precedence(void)
{
    if (precedence)
        step_ahead();
}

static int help(void *context)
{
    const struct help *help = context;
    spawn_keep_precedence();
    return help->work(help->context);
}

static pid_t clone_helper(int (*work)(void *), void *context, int flags)
{
    static char stack[64 << 10] __attribute__((aligned(64)));
    struct help what = {work, context};
    return clone(help, stack + sizeof stack, flags | CLONE_VM | CLONE_VFORK | CLONE_FILES, &what);
}

pid_t spawn_sibling(int (*work)(void *), void *context)
{
    pid_t helper = clone_helper(work, context, CLONE_PARENT);
    spawn_stay_open();
    return helper;
}

int spawn_helper(int (*work)(void *), void *context)
{
    pid_t helper = clone_helper(work, context, 0);
    if (helper < 0)
        return -1;
    while (waitpid(helper, NULL, __WALL) < 0 && errno == EINTR)
        ;
    spawn_stay_open();
    return 0;
}

void spawn_set_controls(struct cell *cell)
{
    for (unsigned i = 0; i < ARRAY_LEN(namespace_controls); i++)
        if (cell->namespaces & namespace_controls[i].flag)
            cell->controls |= CONTROL_BIT(namespace_controls[i].control);
    if (identity_sets_oom_floor())
        cell->controls |= CONTROL_BIT(CONTROL_OOM_FLOOR);
}

int spawn_open_ends(struct cell *cell, int *ours, int *theirs, int *lifeline_read)
{
    int lifeline[2];
    if (spawn_talk_pair(ours, theirs) < 0 || pipe2(lifeline, O_CLOEXEC) < 0)
        return -1;
    *lifeline_read = lifeline[0];
    cell->lifeline = lifeline[1];
    return 0;
}

int spawn_init(struct warden *warden, struct cell *cell, enum cell_step *step)
{
    auto_close int ours = -1, theirs = -1, lifeline_read = -1;
    *step = STEP_CLONE;
    if (spawn_open_ends(cell, &ours, &theirs, &lifeline_read) < 0)
        return -1;
    auto_close int gate = -1;
    if (spawn_talk_pair(&cell->gate, &gate) < 0)
        return -1;

    struct init_setup setup = {.report = theirs,
                               .lifeline = lifeline_read,
                               .gate = gate,
                               .proc = warden->proc,
                               .own_ids = !warden->rootless,
                               .namespaces = cell->namespaces,
                               .tcp_buffer_bytes = SPAWN_TCP_BUFFER_BYTES};
    int pidfd = -1;
    /* The network, the dearest of them, is made by init itself while the program builds the root. */
    struct clone_args args = {.flags = (cell->namespaces & ~(uint64_t)CLONE_NEWNET) | CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)&pidfd};
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid < 0)
        return -1;
    if (pid == 0)
        cell_init_main(&setup);
    cell->init_pid = pid;
    if (loop_watch(warden, &cell->init, pidfd, cell, cell->init.ready) < 0 ||
        loop_watch(warden, &cell->init_talk, take_fd(&ours), cell, cell->init_talk.ready) < 0)
        return -1;
    spawn_set_controls(cell);

    *step = STEP_ID_MAPS;
    cell->user_namespace = identity_user_namespace(warden->proc, pid);
    if (identity_write_maps(warden, cell) < 0)
        return -1;
    return fd_send(cell->init_talk.fd, "m", 1, NULL, 0);
}

int spawn_join(const struct cell *cell)
{
    int fds[CELL_CGROUP_FILES_MAX];
    struct join_message message = {0};
    while (message.cgroup_files < CELL_CGROUP_FILES_MAX && cell->cgroup.join_files[message.cgroup_files] >= 0) {
        fds[message.cgroup_files] = cell->cgroup.join_files[message.cgroup_files];
        message.cgroup_files++;
    }
    return fd_send(cell->talk.fd, &message, sizeof message, fds, message.cgroup_files);
}

static pid_t clone_program(const struct cell *cell, const struct program_setup *setup, uint64_t flags)
{
    struct clone_args args = {.flags = flags};
    into_cgroup(cell, &args);
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid == 0 && cell->pool)
        cell_slot_program_main(setup);
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

struct program_clone_context {
    const struct cell *cell;
    const struct program_setup *setup;
    pid_t pid;
    int error;
};

static int enter_and_clone(void *context)
{
    struct program_clone_context *at = context;
    if (setns(at->cell->init.fd, CLONE_NEWPID) == 0)
        at->pid = clone_program(at->cell, at->setup, CLONE_PARENT);
    at->error = errno;
    return 0;
}

/* An ordinary user's warden could not turn back, for its own pid namespace belongs to somebody else. */
static pid_t clone_through_helper(const struct cell *cell, const struct program_setup *setup)
{
    struct program_clone_context context = {.cell = cell, .setup = setup, .pid = -1};
    if (spawn_helper(enter_and_clone, &context) < 0)
        return -1;
    errno = context.error;
    return context.pid;
}

int spawn_adopt(struct warden *warden, struct cell *cell, pid_t pid, int talk)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* our own child, not reaped: the pid cannot name another */
    cell->program_pid = pid;
    if (loop_watch(warden, &cell->program, pidfd, cell, cell->program.ready) < 0) {
        close(talk);
        return -1;
    }
    return loop_watch(warden, &cell->talk, talk, cell, cell->talk.ready);
}

int spawn_program(struct warden *warden, struct cell *cell, enum cell_step *step)
{
    auto_close int ours = -1, theirs = -1;
    *step = STEP_ENTER;
    if (spawn_talk_pair(&ours, &theirs) < 0)
        return -1;
    struct program_setup setup = {.report = theirs,
                                  .init_pidfd = cell->init.fd,
                                  .gate = cell->gate,
                                  .own_ids = !warden->rootless,
                                  .group_limits = warden->cgroups.kind != CGROUP_NONE,
                                  .confined = cell->pool && cell->pool->confined,
                                  .namespaces = cell->namespaces,
                                  .mounts = cell->mounts};
    pid_t pid = warden->rootless ? clone_through_helper(cell, &setup) : clone_directly(warden, cell, &setup);
    return pid < 0 ? -1 : spawn_adopt(warden, cell, pid, take_fd(&ours));
}
