/* The process that clones the inits of slots. That takes a helper which enters the slot's user namespace, and a third
 * of a millisecond during which whoever needs it stands still: the warden, for whom everybody waits, leaves it to this
 * one. Inits and helpers are the warden's children, as if it had cloned them itself. */
#include <errno.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/steps.h"
#include "cell/sys.h"
#include "warden/pool.h"

enum make_fd { MAKE_REPORT, MAKE_LIFELINE, MAKE_TEMPLATE, MAKE_IDENTITY, MAKE_FDS = MAKE_IDENTITY + SLOT_IDENTITY };

struct make_order {
    uint32_t number, namespaces;
    bool for_fork, new_identity; /* without the descriptors of one */
    bool unused;
    char network_before[sizeof((struct identity *)0)->network_before];
    int64_t limit[LIMIT_COUNT];
};

enum make_outcome { MAKE_CLONED, MAKE_REFUSED, MAKE_DIRTY };

struct make_answer {
    uint32_t number;
    enum make_outcome outcome;
    pid_t pid, helper;
    uint64_t user_namespace; /* of a new identity: the helper may look, for it owns that namespace */
    int error;
};

struct work {
    const struct warden *warden;
    const struct make_order *order;
    const int *fds;
    struct init_setup setup;
    struct make_answer answer;
};

/* In the helper: into the template's mounts and the identity, or to the owner of new ones. */
static bool enter(struct work *work)
{
    const struct warden *warden = work->warden;
    const int *fds = work->fds, *spaces = fds + MAKE_IDENTITY;
    if (setns(fds[MAKE_TEMPLATE], CLONE_NEWNS) < 0)
        return false;
    if (!work->order->new_identity) {
        struct identity identity = {.unused = work->order->unused};
        memcpy(identity.network_before, work->order->network_before, sizeof identity.network_before);
        if (setns(spaces[SLOT_NET], CLONE_NEWNET) < 0)
            return false;
        if (!identity_is_clean(warden, &identity)) {
            work->answer.outcome = MAKE_DIRTY;
            return false;
        }
        return setns(spaces[SLOT_IPC], CLONE_NEWIPC) == 0 && setns(spaces[SLOT_UTS], CLONE_NEWUTS) == 0 &&
               setns(spaces[SLOT_USER], CLONE_NEWUSER) == 0;
    }
    if (warden->rootless)
        return true;
    /* With the rights kept: not every host lets others make user namespaces. */
    uid_t owner = identity_slot_owner(warden);
    return prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0 && syscall(SYS_setresgid, owner, owner, owner) == 0 &&
           syscall(SYS_setresuid, owner, owner, owner) == 0;
}

static int clone_init(void *context)
{
    struct work *work = context;
    uint64_t kinds = CLONE_NEWPID | CLONE_NEWNS;
    if (work->order->new_identity)
        kinds |= CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS;
    struct clone_args args = {.flags = CLONE_PARENT | (work->order->namespaces & kinds)};
    if (enter(work)) {
        spawn_stay_open();
        work->answer.pid = sys_clone3(&args, sizeof args);
        if (work->answer.pid == 0)
            cell_slot_init_main(&work->setup);
        work->answer.outcome = work->answer.pid < 0 ? MAKE_REFUSED : MAKE_CLONED;
        if (work->order->new_identity && work->answer.pid > 0)
            work->answer.user_namespace = identity_user_namespace(work->warden->proc, work->answer.pid);
    }
    work->answer.error = errno;
    return 0;
}

static struct make_answer make(const struct warden *warden, const struct make_order *order, const int *fds)
{
    struct work work = {.warden = warden,
                        .order = order,
                        .fds = fds,
                        .setup = {.report = fds[MAKE_REPORT],
                                  .lifeline = fds[MAKE_LIFELINE],
                                  .gate = -1,
                                  .for_fork = order->for_fork,
                                  .new_identity = order->new_identity,
                                  .proc = warden->proc,
                                  .own_ids = !warden->rootless,
                                  .namespaces = order->namespaces,
                                  .tcp_buffer_bytes = SPAWN_TCP_BUFFER_BYTES},
                        .answer = {.number = order->number, .outcome = MAKE_REFUSED, .pid = -1, .error = ECHILD}};
    memcpy(work.setup.limit, order->limit, sizeof work.setup.limit);
    work.answer.helper = spawn_sibling(clone_init, &work);
    if (work.answer.helper < 0)
        work.answer.error = errno;
    return work.answer;
}

static _Noreturn void serve(const struct warden *warden, int socket)
{
    const int needed[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket, warden->proc};
    prctl(PR_SET_NAME, "cordon-maker");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    spawn_keep_precedence();
    if (descriptors_keep(needed, ARRAY_LEN(needed)) < 0)
        _exit(1);
    for (;;) {
        struct make_order order;
        int fds[MAKE_FDS];
        size_t count = 0;
        if (fd_receive(socket, &order, sizeof order, fds, MAKE_FDS, &count) != sizeof order ||
            count != (order.new_identity ? MAKE_IDENTITY : MAKE_FDS))
            _exit(0);
        struct make_answer answer = make(warden, &order, fds);
        if (fd_send(socket, &answer, sizeof answer, NULL, 0) < 0)
            _exit(0);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
}

/* From here on: the warden's side. */

static void end(struct warden *warden, struct maker *maker)
{
    loop_forget(warden, &maker->watch);
    if (maker->pid > 0) {
        kill(maker->pid, SIGKILL);
        while (waitpid(maker->pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    maker->pid = 0;
}

/* An init may have been cloned that belongs to nobody: it leaves when its lifeline is closed, and is reaped by the way.
 * Until then it is in the cell's identity, which therefore serves nobody else. What it reports does not count. */
static void expect_init(struct warden *warden, struct cell *cell)
{
    pool_expect_stranger(warden);
    loop_forget(warden, &cell->init_talk);
    if (cell->identity)
        identity_discard(cell->identity);
    cell->identity = NULL;
}

/* Whoever was being made is made again, once. */
void maker_stop(struct warden *warden)
{
    end(warden, &warden->maker);
    for (struct cell *cell = warden->cells; cell; cell = cell->next) {
        if (!cell->being_made)
            continue;
        cell->being_made = false;
        pool_expect_stranger(warden); /* its helper */
        expect_init(warden, cell);
        if (cell->phase == PHASE_ENDED)
            continue;
        enum cell_step step = STEP_CLONE;
        bool again = !cell->made_again && !warden->leaving;
        cell->made_again = true;
        if (!again || maker_order(warden, cell, &step) < 0)
            cell_fail(warden, cell, step, 0, ECHILD, "clone an init");
    }
}

static int adopt_init(struct warden *warden, struct cell *cell, const struct make_answer *answer, enum cell_step *step)
{
    pid_t pid = answer->pid;
    *step = STEP_CLONE;
    cell->init_pid = pid;
    cell->user_namespace = answer->user_namespace;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* our own child, not reaped: the pid cannot name another */
    if (loop_watch(warden, &cell->init, pidfd, cell, cell->init.ready) < 0)
        return -1;
    if (cell->phase == PHASE_ENDED) { /* given up meanwhile */
        cell_kill_processes(cell);
        return 0;
    }
    if (loop_watch(warden, &cell->init_talk, cell->init_talk.fd, cell, cell->init_talk.ready) < 0)
        return -1;
    spawn_set_controls(cell);
    *step = STEP_ID_MAPS;
    if (cell->identity && identity_stands(cell->identity)) {
        identity_ids(warden, cell);
        return 0;
    }
    if (identity_write_maps(warden, cell) < 0)
        return -1;
    return fd_send(cell->init_talk.fd, "m", 1, NULL, 0);
}

static void take_answer(struct warden *warden, struct cell *cell, const struct make_answer *answer)
{
    enum cell_step step = STEP_CLONE;
    int r = -1, error = answer->error;
    cell->being_made = false;
    if (answer->outcome == MAKE_REFUSED)
        expect_init(warden, cell); /* its helper may have been killed before it could tell */
    else if (answer->outcome == MAKE_CLONED) {
        r = adopt_init(warden, cell, answer, &step);
        error = errno;
    } else {
        identity_discard(cell->identity);
        cell->identity = NULL;
        r = cell->phase == PHASE_ENDED ? 0 : maker_order(warden, cell, &step);
        error = errno;
    }
    if (r < 0 && cell->phase != PHASE_ENDED)
        cell_fail(warden, cell, step, 0, error, NULL);
}

static bool is_reaped(pid_t pid)
{
    return pid <= 0 || waitpid(pid, NULL, WNOHANG | __WALL) != 0;
}

/* One that is not dead yet is reaped with other strangers, or when the next has done its work: strangers have to wait
 * for a quiet moment. */
static void reap_helper(struct warden *warden, pid_t pid)
{
    struct maker *maker = &warden->maker;
    if (maker->helper > 0 && is_reaped(maker->helper) && warden->strangers)
        warden->strangers--;
    maker->helper = is_reaped(pid) ? 0 : pid;
    if (maker->helper)
        pool_expect_stranger(warden);
}

static void on_maker(struct warden *warden, struct cell *none, uint32_t events)
{
    (void)none;
    (void)events;
    struct make_answer answer;
    ssize_t n = fd_receive_now(warden->maker.watch.fd, &answer, sizeof answer, NULL, 0, &(size_t){0});
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof answer) {
        maker_stop(warden);
        return;
    }
    reap_helper(warden, answer.helper);
    for (struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->being_made && cell->number == answer.number) {
            take_answer(warden, cell, &answer);
            return;
        }
}

static int start(struct warden *warden)
{
    auto_close int ours = -1, theirs = -1;
    const struct timeval patience = {.tv_sec = 1}; /* one that stalls must not hold up the warden for long */
    if (spawn_talk_pair(&ours, &theirs) < 0 ||
        setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        serve(warden, theirs);
    if (pid < 0)
        return -1;
    warden->maker.pid = pid;
    if (loop_watch(warden, &warden->maker.watch, take_fd(&ours), NULL, on_maker) == 0)
        return 0;
    int saved = errno;
    end(warden, &warden->maker);
    errno = saved;
    return -1;
}

int maker_order(struct warden *warden, struct cell *cell, enum cell_step *step)
{
    auto_close int theirs = -1, lifeline_read = -1;
    struct template *template = template_get(warden, cell->pool->plan.etc, step);
    if (!template)
        return -1;
    *step = STEP_CLONE;
    loop_forget(warden, &cell->init_talk);
    cleanup_close(&cell->lifeline);
    cell->lifeline = -1;
    if ((warden->maker.watch.fd < 0 && start(warden) < 0) ||
        spawn_open_ends(cell, &cell->init_talk.fd, &theirs, &lifeline_read) < 0)
        return -1;
    cell->identity = identity_take(warden);
    struct make_order order = {.number = cell->number,
                               .namespaces = cell->namespaces,
                               .for_fork = cell->pool->kind == POOL_FORKED,
                               .new_identity = !cell->identity || !identity_stands(cell->identity)};
    int fds[MAKE_FDS] = {
        [MAKE_REPORT] = theirs, [MAKE_LIFELINE] = lifeline_read, [MAKE_TEMPLATE] = template_fd(template)};
    memcpy(order.limit, cell->limit, sizeof order.limit);
    if (!order.new_identity) {
        order.unused = cell->identity->unused;
        memcpy(order.network_before, cell->identity->network_before, sizeof order.network_before);
        memcpy(fds + MAKE_IDENTITY, cell->identity->spaces, sizeof cell->identity->spaces);
    }
    cell->being_made = true;
    if (fd_send(warden->maker.watch.fd, &order, sizeof order, fds, order.new_identity ? MAKE_IDENTITY : MAKE_FDS) == 0)
        return 0;
    int saved = errno;
    cell->being_made = false;
    if (saved == EAGAIN)
        maker_stop(warden); /* it stalls */
    errno = saved;
    return -1;
}
