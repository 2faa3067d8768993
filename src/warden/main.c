/* The warden's process: started by the library with one socket and an empty environment, gone when that socket closes.
 * An ordinary user's warden first becomes root of a user namespace of its own and executes itself again, so that its
 * memory belongs to that namespace and its children may be looked into. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "warden/warden.h"

#define ROOTLESS_FLAG "--rootless"

static bool may_administer(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return data[0].effective & (1U << CAP_SYS_ADMIN);
}

/* Only returns when the process is not to be executed again. */
static void become_root_of_own_namespace(const char *self, bool late_group)
{
    char uid[16], gid[16], error[16] = "0";
    snprintf(uid, sizeof uid, "%u", geteuid());
    snprintf(gid, sizeof gid, "%u", getegid());
    char *args[] = {(char *)self, (char *)ROOTLESS_FLAG, uid, gid, error, late_group ? (char *)WARDEN_LATE_GROUP : NULL,
                    NULL};
    if (identity_enter_own_userns(geteuid(), getegid()) < 0)
        snprintf(error, sizeof error, "%d", errno);
    char *no_environment[] = {NULL};
    execve("/proc/self/exe", args, no_environment);
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
        cell_order(warden, &order, fds, fd_count);
        return;
    }
    for (size_t i = 0; i < fd_count; i++)
        close(fds[i]);
    if (n < 0 && (errno == EMSGSIZE || errno == EINTR))
        return;
    loop_forget(warden, &warden->engine);
    warden->leaving = true;
    cell_end_all(warden);
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int set_up(struct warden *warden)
{
    signal(SIGPIPE, SIG_IGN);
    /* posix_spawn leaves the C library's two internal signals ignored, and ignoring is inherited by programs. */
    static const char standard[64];
    for (int number = 32; number <= 33; number++)
        syscall(SYS_rt_sigaction, number, standard, NULL, 8);
    umask(077);
    raise_descriptor_limit();
    prctl(PR_SET_NAME, "cordon-warden");
    fcntl(WARDEN_SOCKET, F_SETFD, FD_CLOEXEC);
    cpu_set_t processors;
    warden->processors = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
    warden->own_pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    warden->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!warden->late_group)
        cgroup_root_find(&warden->cgroups);
    if (warden->epoll < 0 || warden->own_pid_ns < 0)
        return -1;
    return loop_watch(warden, &warden->engine, WARDEN_SOCKET, NULL, on_engine);
}

int main(int argc, char **argv)
{
    static struct warden warden = {.engine.fd = -1};
    struct stat st;
    if (fstat(WARDEN_SOCKET, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        static const char text[] = "cordon-warden: started by libcordon, not by hand (see cordon(1))\n";
        (void)!write(2, text, sizeof text - 1);
        return 2;
    }
    warden.uid = geteuid();
    warden.gid = getegid();
    warden.late_group = argc >= 2 && !strcmp(argv[argc - 1], WARDEN_LATE_GROUP);
    if (argc >= 5 && !strcmp(argv[1], ROOTLESS_FLAG)) {
        warden.rootless = true;
        warden.uid = (uid_t)strtoul(argv[2], NULL, 10);
        warden.gid = (gid_t)strtoul(argv[3], NULL, 10);
        int error = (int)strtol(argv[4], NULL, 10);
        if (error) {
            warden.broken = (struct event_failed){
                .type = EVENT_FAILED, .control = CONTROL_USERNS, .step = STEP_CLONE, .error = error};
            snprintf(warden.broken.text, sizeof warden.broken.text, "create a user namespace");
        }
    } else if (!may_administer())
        become_root_of_own_namespace(argv[0], warden.late_group);
    else
        warden.rootless = !identity_has_ids();
    /* A cell's init keeps the warden's command line, and programs can read that: it must tell nothing. */
    for (int i = 1; i < argc; i++)
        memset(argv[i], 0, strlen(argv[i]));
    if (set_up(&warden) < 0)
        return 1;
    loop_run(&warden);
    return 0;
}
