/* A zygote's process, from clone to the exec of its interpreter: a root of its own, no network, no rights, and an id
 * that owns slots and nothing else. It never runs user code; what it forks enters a slot (cell_forked_main). */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cell/steps.h"

static int become_owner(unsigned owner, bool own_ids)
{
    if (!own_ids)
        return 0; /* an ordinary user's own id, which it has already */
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, owner, owner, owner) < 0)
        return -1;
    return (int)syscall(SYS_setresuid, owner, owner, owner);
}

_Noreturn void cell_zygote_main(const struct zygote_setup *setup)
{
    const int needed[] = {setup->socket, setup->template, setup->noise};
    const struct plan *plan = setup->plan;
    int socket = setup->socket;
    enum cell_step step;
    uint32_t detail = 0;

    prctl(PR_SET_NAME, "cordon-zygote");
    if (descriptors_keep(needed, ARRAY_LEN(needed)) < 0)
        report_fail(socket, STEP_STDIO, 0);
    identity_volunteer_for_oom(); /* for all that are forked here */
    identity_new_keyring();
    setsid();
    personality(PER_LINUX);
    if (setns(setup->template, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
        report_fail(socket, STEP_ENTER, 0);
    if (root_for_zygote(plan->limit, &step) < 0)
        report_fail(socket, step, 0);
    umask(022);
    if (files_write(plan, &detail) < 0)
        report_fail(socket, STEP_FILES, detail);

    /* Pipes, as a program has them: interpreters look at what their streams are. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), ends[2], *kept[] = {&socket};
    if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
        report_fail(socket, STEP_STDIO, 1);
    int streams[STREAM_COUNT] = {ends[0], setup->noise, setup->noise, socket};
    if (streams_connect(streams, null, kept, 1) < 0)
        report_fail(socket, STEP_STDIO, 2);
    if (chdir("/work") < 0)
        report_fail(socket, STEP_FILES, UINT32_MAX);
    if (identity_lock() < 0 || become_owner(setup->owner, setup->own_ids) < 0 || identity_drop_capabilities() < 0)
        report_fail(socket, STEP_CAPABILITIES, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        report_fail(socket, STEP_NO_NEW_PRIVS, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &standard, NULL);
    for (char *const *path = plan->candidates; *path; path++) {
        execve(*path, plan->argv, plan->envp);
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    report_fail(socket, STEP_EXEC, 0);
}
