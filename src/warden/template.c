/* Mount templates: a root with everything in it that no cell makes different, built once and then copied by cloning
 * into a mount namespace. Without a process: the namespace's descriptor keeps it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cell/steps.h"
#include "cell/sys.h"
#include "warden/warden.h"

/* Files are bound by inode, and the system replaces files by renaming: a template must not outlive them by much. */
#define AGE_MAX_US    (300 * UINT64_C(1000000))
#define PATIENCE_MS   5000
#define CHANGE_MARKER "/etc/ld.so.cache"

struct template
{
    struct template *next;
    char *names; /* of the entries of /etc, each ended by a newline */
    int mounts;
    uint64_t made_us;
    struct timespec marker;
};

static char *join_names(char *const *etc)
{
    size_t length = 1;
    for (char *const *name = etc; *name; name++)
        length += strlen(*name) + 1;
    char *names = malloc(length), *at = names;
    if (!names)
        return NULL;
    for (; *etc; etc++)
        at = stpcpy(stpcpy(at, *etc), "\n");
    *at = '\0';
    return names;
}

static struct timespec marker_now(void)
{
    struct stat st;
    return stat(CHANGE_MARKER, &st) == 0 ? st.st_ctim : (struct timespec){0};
}

static bool is_fresh(const struct template *template)
{
    struct timespec marker = marker_now();
    return template->mounts >= 0 && clock_us() - template->made_us < AGE_MAX_US &&
           marker.tv_sec == template->marker.tv_sec && marker.tv_nsec == template->marker.tv_nsec;
}

static _Noreturn void build(int report, int proc, char *const *etc)
{
    const int needed[] = {report, proc};
    const struct cell_report prepared = {.kind = REPORT_PREPARED};
    enum cell_step step;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    descriptors_keep(needed, ARRAY_LEN(needed));
    if (root_template(etc, &step) < 0)
        report_fail(report, step, 0);
    int mounts = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (mounts < 0)
        report_fail(report, STEP_ROOT, 1);
    report_send(report, &prepared, mounts);
    _exit(0);
}

/* The builder runs no code but ours and is waited for, within reason. */
static int make(const struct warden *warden, char *const *etc, enum cell_step *step)
{
    auto_close int ours = -1, theirs = -1;
    *step = STEP_CLONE;
    if (spawn_talk_pair(&ours, &theirs) < 0)
        return -1;
    struct clone_args args = {.flags = CLONE_NEWNS | CLONE_NEWPID};
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid < 0)
        return -1;
    if (pid == 0)
        build(theirs, warden->proc, etc);
    cleanup_close(&theirs);
    theirs = -1;
    struct pollfd ready = {.fd = ours, .events = POLLIN};
    struct cell_report report = {.kind = REPORT_FAILED, .step = STEP_ROOT, .error = ETIMEDOUT};
    int mounts = -1;
    size_t count = 0;
    if (poll(&ready, 1, PATIENCE_MS) == 1 &&
        fd_receive(ours, &report, sizeof report, &mounts, 1, &count) != sizeof report)
        report.error = EPIPE;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, __WALL);
    if (count == 1)
        return mounts;
    *step = (enum cell_step)report.step;
    errno = report.error;
    return -1;
}

struct template *template_get(struct warden *warden, char *const *etc, enum cell_step *step)
{
    char *names = join_names(etc);
    struct template *found = warden->templates;
    if (!names)
        return NULL;
    while (found && strcmp(found->names, names) != 0)
        found = found->next;
    if (found)
        free(names);
    else if ((found = calloc(1, sizeof *found))) {
        *found = (struct template){.next = warden->templates, .names = names, .mounts = -1};
        warden->templates = found;
    } else {
        free(names);
        return NULL;
    }
    if (is_fresh(found))
        return found;
    cleanup_close(&found->mounts);
    found->marker = marker_now();
    found->made_us = clock_us();
    found->mounts = make(warden, etc, step);
    return found->mounts < 0 ? NULL : found;
}

int template_fd(const struct template *template)
{
    return template->mounts;
}

void template_close_all(struct warden *warden)
{
    while (warden->templates) {
        struct template *template = warden->templates;
        warden->templates = template->next;
        cleanup_close(&template->mounts);
        free(template->names);
        free(template);
    }
}
