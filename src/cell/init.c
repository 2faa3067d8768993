/* Init: pid 1 of the cell. Makes the network, then holds the namespaces. It runs no user code, keeps nothing of a
 * request in its memory (the plan is not copied into it), cannot be traced, and leaves when the warden does. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <poll.h>
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

/* From here on init needs to wait and to leave; anything else would be an attacker's doing. */
static void lock_down(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(filter), .filter = filter};
    sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Until the warden is gone (its end of the lifeline closes) or the program is, if it is known (-1: not): then nothing
 * here is of use any more, and leaving at once spares the warden's word. Neither descriptor ever has anything to read.
 */
static _Noreturn void hold(int lifeline, int program_pidfd)
{
    struct pollfd ends[] = {{.fd = lifeline, .events = POLLIN}, {.fd = program_pidfd, .events = POLLIN}};
    long n;
    do
        n = syscall(SYS_ppoll, ends, 2, NULL, NULL, 0);
    while (n < 0 && errno == EINTR);
    _exit(0);
}

/* The network of the cell, made here while the program builds the root. */
static void make_network(const struct init_setup *setup)
{
    if (!(setup->namespaces & CLONE_NEWNET))
        return;
    if (unshare(CLONE_NEWNET) < 0)
        report_fail(setup->report, STEP_NETWORK, 0);
    if (network_loopback_up() < 0)
        report_fail(setup->report, STEP_LOOPBACK, 0);
    if (network_bound_buffers(setup->proc, setup->tcp_buffer_bytes) < 0)
        report_fail(setup->report, STEP_NETWORK_BUFFERS, 0);
}

/* Init cannot be looked into any more, so the program gets the network as a descriptor. */
static void open_gate(const struct init_setup *setup)
{
    int network = openat(setup->proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
    if (network < 0)
        report_fail(setup->report, STEP_NETWORK, 1);
    if (fd_send(setup->gate, "g", 1, &network, 1) < 0)
        _exit(1);
}

static void begin(const struct init_setup *setup)
{
    const int needed[] = {setup->report, setup->lifeline, setup->gate, setup->proc};
    prctl(PR_SET_NAME, "cordon-init");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (descriptors_keep(needed, ARRAY_LEN(needed)) < 0)
        report_fail(setup->report, STEP_STDIO, 0);
}

static void set_host_name(const struct init_setup *setup)
{
    if (setup->namespaces & CLONE_NEWUTS && (sethostname("cordon", 6) < 0 || setdomainname("", 0) < 0))
        report_fail(setup->report, STEP_HOSTNAME, 0);
}

static void become_root(const struct init_setup *setup)
{
    if (identity_become(setup->own_ids ? 0 : CELL_UID, setup->own_ids) < 0)
        report_fail(setup->report, STEP_IDENTITY, 0);
    /* Again, for an id change clears it; the lifeline covers a warden that died in between. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void hide(const struct init_setup *setup)
{
    if (prctl(PR_SET_DUMPABLE, MUTANT(INIT_HIDDEN) ? 1 : 0) < 0)
        report_fail(setup->report, STEP_IDENTITY, 1);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &ignore, NULL); /* orphans are reaped by the kernel */
}

static _Noreturn void guard(const struct init_setup *setup, int program_pidfd)
{
    /* The program must find nothing to reopen in /proc/1/fd even if init could be looked into. */
    const int held[] = {setup->lifeline, program_pidfd};
    descriptors_keep(held, ARRAY_LEN(held));
    /* Its death is work that may wait: whoever kills it has an answer to send first. */
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_BATCH, &none);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    identity_drop_capabilities();
    lock_down();
    hold(setup->lifeline, program_pidfd);
}

_Noreturn void cell_init_main(const struct init_setup *setup)
{
    begin(setup);
    make_network(setup);
    set_host_name(setup);
    identity_new_keyring();
    wait_for_byte(setup->report);
    become_root(setup);
    int program_pidfd = wait_for_fd(setup->report); /* before the gate opens: what follows it is soon done */
    hide(setup);
    open_gate(setup);
    guard(setup, program_pidfd);
}

/* Tells the warden that the root stands, and hands it what others need to enter. */
static void report_slot(const struct init_setup *setup, int work)
{
    static const char *const names[SLOT_NAMESPACES] = {
        [SLOT_USER] = "self/ns/user", [SLOT_NET] = "self/ns/net", [SLOT_IPC] = "self/ns/ipc",
        [SLOT_UTS] = "self/ns/uts",   [SLOT_PID] = "self/ns/pid", [SLOT_MNT] = "self/ns/mnt"};
    const struct cell_report prepared = {.kind = REPORT_PREPARED};
    int fds[1 + SLOT_NAMESPACES] = {work};
    size_t count = 1;
    int first = setup->new_identity ? SLOT_USER : SLOT_PID, last = setup->for_fork ? SLOT_NAMESPACES : SLOT_PID;
    for (int i = first; i < last; i++) {
        fds[count] = openat(setup->proc, names[i], O_RDONLY | O_CLOEXEC);
        if (fds[count++] < 0)
            report_fail(setup->report, STEP_ENTER, (uint32_t)i);
    }
    if (fd_send(setup->report, &prepared, sizeof prepared, fds, count) < 0)
        _exit(1);
}

_Noreturn void cell_slot_init_main(const struct init_setup *setup)
{
    enum cell_step step;
    begin(setup);
    if (setup->new_identity) {
        make_network(setup);
        set_host_name(setup);
        wait_for_byte(setup->report);
    }
    identity_new_keyring();
    become_root(setup);
    int work = root_on_template(setup->limit, setup->new_identity, &step);
    if (work < 0)
        report_fail(setup->report, step, 0);
    hide(setup);
    report_slot(setup, work);
    guard(setup, -1);
}
