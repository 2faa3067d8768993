/* Serving an engine: orders come in on its socket, cells are made, and when the socket closes everything ends. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/mutant.h"
#include "warden/entry.h"
#include "warden/warden.h"

#ifndef PR_SET_MEMORY_MERGE /* Linux 6.4 */
#define PR_SET_MEMORY_MERGE 67
#endif

static void take_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count)
{
    if (order->type == ORDER_RUN)
        cell_order(warden, order, fds, fd_count);
    else if (order->type == ORDER_POOL)
        pool_order(warden, order, fds, fd_count);
    else if (order->type == ORDER_WARM && fd_count == 1)
        pool_warm(warden, order, fds[0]);
    else if (order->type == ORDER_POOLS && fd_count == 1)
        pool_list(warden, fds[0]);
    else if (order->type == ORDER_BELL && fd_count == 1 && warden->bell.fd < 0)
        offer_hang_bell(warden, fds[0]);
    else
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
}

static void on_engine(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)cell;
    (void)events;
    struct order order;
    int fds[FD_MESSAGE_MAX];
    size_t fd_count = 0;
    ssize_t n = fd_receive(warden->engine.fd, &order, sizeof order, fds, FD_MESSAGE_MAX, &fd_count);
    if (n == sizeof order && order.size == sizeof order) {
        if (warden->late_group)
            cgroup_root_find(&warden->cgroups);
        warden->late_group = false;
        take_order(warden, &order, fds, fd_count);
        return;
    }
    for (size_t i = 0; i < fd_count; i++)
        close(fds[i]);
    if (n < 0 && (errno == EMSGSIZE || errno == EINTR))
        return;
    loop_forget(warden, &warden->engine);
    warden->leaving = true;
    pool_close_all(warden);
    cell_end_all(warden);
}

static uint64_t raise_descriptor_limit(void)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur;
}

/* Programs inherit what is ignored and what is blocked. Raw calls, for the C library keeps two signals to itself, and
 * posix_spawn leaves those ignored. */
static void reset_signals(void)
{
    static const char standard[64];
    for (int number = 1; number <= 64; number++)
        syscall(SYS_rt_sigaction, number, standard, NULL, 8);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, standard, NULL, 8);
    signal(SIGPIPE, SIG_IGN);
}

/* A caller's precedence over others is not the programs'. */
static void reset_scheduling(void)
{
    struct sched_param none = {0};
    if (sched_getscheduler(0) != SCHED_OTHER)
        sched_setscheduler(0, SCHED_OTHER, &none);
    if (getpriority(PRIO_PROCESS, 0) < 0)
        setpriority(PRIO_PROCESS, 0, 0);
}

/* A caller may have told the kernel to merge equal pages of whole processes, which children inherit: kernel threads
 * would then work for cells that no group is charged for, and its timing would tell one cell what another holds. */
static void leave_merging(void)
{
    prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0);
}

static int set_up(struct warden *warden)
{
    warden->pid = getpid();
    leave_merging();
    reset_signals();
    reset_scheduling();
    spawn_take_precedence();
    umask(077);
    warden->descriptors_max = raise_descriptor_limit();
    prctl(PR_SET_NAME, "cordon-warden");
    fcntl(WARDEN_SOCKET, F_SETFD, FD_CLOEXEC);
    cpu_set_t processors;
    warden->processors = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
    warden->own_pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    warden->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    warden->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!warden->late_group)
        cgroup_root_find(&warden->cgroups);
    if (warden->epoll < 0 || warden->own_pid_ns < 0 || warden->proc < 0)
        return -1;
    return loop_watch(warden, &warden->engine, WARDEN_SOCKET, NULL, on_engine);
}

int warden_serve(struct warden *warden)
{
    if (set_up(warden) < 0)
        return 1;
    loop_run(warden);
    cgroup_remove_zygotes(&warden->cgroups);
    cgroup_io_remove(&warden->cgroups);
    template_close_all(warden);
    identity_close_all(warden);
    maker_stop(warden);
    scout_close(warden);
    emptier_close(warden);
    return 0;
}

int warden_entry(int socket)
{
    static struct warden warden = WARDEN_EMPTY;
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(socket, WARDEN_SOCKET) < 0)
        return 1;
    for (int fd = 0; fd < WARDEN_SOCKET; fd++)
        dup2(null, fd);
    if (!MUTANT(CLOSE_FDS))
        close_range(WARDEN_SOCKET + 1, ~0U, 0);
    setsid();
    warden.uid = geteuid();
    warden.gid = getegid();
    warden.rootless = !identity_has_ids();
    return warden_serve(&warden);
}
