/* Zygotes, from outside: started, asked to fork into slots, replaced when they age, die or cannot serve. A pool whose
 * zygote keeps failing falls back to started interpreters and says so. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cell/sys.h"
#include "warden/pool.h"

#define SECOND_US   UINT64_C(1000000)
#define PATIENCE_US (30 * SECOND_US)
/* A fork takes a millisecond; a machine that is short of everything may take a while. */
#define ANSWER_US    (5 * SECOND_US)
#define AGE_US       (600 * SECOND_US)
#define FORKS_MAX    5000
#define RUSH_WAIT_MS 20
#define FAILURES_MAX 3

static struct timespec changed_at(char *const *candidates)
{
    struct stat st;
    for (; *candidates; candidates++)
        if (stat(*candidates, &st) == 0)
            return st.st_ctim;
    return (struct timespec){0};
}

static void end_process(struct zygote *zygote)
{
    if (zygote->pid <= 0)
        return;
    kill(zygote->pid, SIGKILL); /* our child, not reaped: the pid is still its own */
    waitpid(zygote->pid, NULL, __WALL);
    zygote->pid = 0;
}

/* Cells that were promised a child by a zygote that is gone. */
static void fail_promised(struct warden *warden, struct pool *pool)
{
    for (struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->pool == pool && cell->forked_talk >= 0 && cell->phase < PHASE_RUNNING) {
            pool_expect_stranger(warden);
            pool_expect_stranger(warden); /* its helper and the child, as far as they came to be */
            cell_fail(warden, cell, STEP_ENTER, 0, ECHILD, "the zygote ended");
        }
}

static void go_without(struct warden *warden, struct pool *pool)
{
    pool->zygote.state = ZYGOTE_GIVEN_UP;
    if (pool->fork_only) { /* slots serve instead */
        for (struct cell *cell = warden->cells; cell; cell = cell->next)
            if (cell->pool == pool && cell->phase <= PHASE_SLOT)
                cell_fail(warden, cell, STEP_ENTER, 0, ECHILD, "no zygote serves");
        return;
    }
    pool->kind = POOL_STARTED;
    for (struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->pool == pool && cell->phase == PHASE_SLOT)
            slot_enter(warden, cell);
}

/* The last line it printed, if it did. */
static void take_noise(struct zygote *zygote, char *text, size_t size)
{
    char bytes[1024];
    ssize_t n = zygote->noise < 0 ? 0 : read(zygote->noise, bytes, sizeof bytes - 1);
    cleanup_close(&zygote->noise);
    zygote->noise = -1;
    while (n > 0 && bytes[n - 1] == '\n')
        n--;
    if (n <= 0)
        return;
    bytes[n] = '\0';
    const char *line = strrchr(bytes, '\n');
    snprintf(text, size, "%.*s", (int)size - 1, line ? line + 1 : bytes);
}

static void lose(struct warden *warden, struct pool *pool, const char *text, int error)
{
    struct zygote *zygote = &pool->zygote;
    bool served = zygote->state == ZYGOTE_SERVING && zygote->bad_children < FAILURES_MAX;
    char said[120] = "";
    loop_forget(warden, &zygote->watch);
    end_process(zygote);
    take_noise(zygote, said, sizeof said);
    zygote->state = ZYGOTE_NONE;
    zygote->failures = served ? 1 : zygote->failures + 1;
    pool->failed++;
    pool->retry_us = clock_us() + zygote->failures * SECOND_US / 10;
    fail_promised(warden, pool);
    if (zygote->failures >= FAILURES_MAX)
        go_without(warden, pool);
    snprintf(pool->text, sizeof pool->text, "zygote: %s%s%.60s%s%s", text, error ? ": " : "",
             error ? strerror(error) : "", *said ? ": " : "", said);
}

static struct cell *find_cell(const struct warden *warden, uint32_t number)
{
    struct cell *cell = warden->cells;
    while (cell && (cell->number != number || cell->forked_talk < 0))
        cell = cell->next;
    return cell;
}

/* Nobody is waited for: what is not dead yet is reaped with other strangers. */
static void reap(struct warden *warden, pid_t pid)
{
    if (pid > 0 && waitpid(pid, NULL, WNOHANG | __WALL) == 0)
        pool_expect_stranger(warden);
}

static void take_child(struct warden *warden, const struct zygote_answer *answer)
{
    struct cell *cell = find_cell(warden, answer->number);
    reap(warden, answer->helper);
    if (!cell || cell->phase == PHASE_ENDED) { /* given up meanwhile; its slot is gone and so is the child */
        reap(warden, answer->pid);
        return;
    }
    if (answer->pid <= 0)
        cell_fail(warden, cell, STEP_ENTER, 0, answer->error, "fork a waiting interpreter");
    else if (spawn_adopt(warden, cell, answer->pid, take_fd(&cell->forked_talk)) < 0)
        cell_fail(warden, cell, STEP_ENTER, 0, errno, NULL);
}

static void serve_slots(struct warden *warden, struct pool *pool)
{
    for (struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->pool == pool && cell->phase == PHASE_SLOT)
            slot_enter(warden, cell);
}

/* A program of ours in a cell of its own, before any other. */
static void prove(struct warden *warden, struct pool *pool)
{
    struct cell *cell = pool->plan.handover_count ? cell_new(warden) : NULL;
    pool->zygote.state = cell ? ZYGOTE_PROVING : ZYGOTE_SERVING;
    if (!cell) {
        serve_slots(warden, pool);
        return;
    }
    cell->pool = pool;
    cell->probe = cell->ordered = true;
    cell->plan = pool->plan;
    cell->plan.mapping = cell->plan.arrays = NULL; /* the pool's */
    cell->accepted_us = clock_us();
    slot_make(warden, cell);
}

void zygote_proved(struct warden *warden, struct pool *pool, bool good)
{
    if (pool->zygote.state != ZYGOTE_PROVING)
        return;
    if (!good) {
        lose(warden, pool, "its first child failed the check", 0);
        return;
    }
    pool->zygote.state = ZYGOTE_SERVING;
    pool->zygote.failures = 0;
    serve_slots(warden, pool);
}

void zygote_failed_child(struct warden *warden, struct pool *pool, bool answered)
{
    if (!answered && pool->zygote.state == ZYGOTE_SERVING)
        lose(warden, pool, "it does not answer", ETIMEDOUT);
    if (pool->zygote.state == ZYGOTE_SERVING && ++pool->zygote.bad_children >= FAILURES_MAX)
        lose(warden, pool, "its children do not come to wait", 0);
}

static void take_answer(struct warden *warden, struct pool *pool)
{
    union {
        struct zygote_answer answer;
        struct cell_report report;
    } message;
    size_t fd_count = 0;
    ssize_t n = fd_receive(pool->zygote.watch.fd, &message, sizeof message, NULL, 0, &fd_count);
    if (n == sizeof message.report && message.report.kind == REPORT_FAILED)
        lose(warden, pool, cell_step_name((enum cell_step)message.report.step), message.report.error);
    else if (n != sizeof message.answer)
        lose(warden, pool, "it ended", n < 0 ? errno : ECHILD);
    else if (message.answer.number)
        take_child(warden, &message.answer);
    else
        prove(warden, pool);
}

static void on_zygote(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)cell;
    (void)events;
    for (struct pool *pool = warden->pools; pool; pool = pool->next)
        while (pool->zygote.watch.fd >= 0 && loop_has_input(pool->zygote.watch.fd))
            take_answer(warden, pool);
}

void zygote_start(struct warden *warden, struct pool *pool)
{
    struct zygote *zygote = &pool->zygote;
    auto_close int ours = -1, theirs = -1;
    enum cell_step step = STEP_CLONE;
    struct template *template = template_get(warden, pool->zygote_plan.etc, &step);
    int noise[2];
    if (!template || spawn_talk_pair(&ours, &theirs) < 0 || pipe2(noise, O_CLOEXEC) < 0) {
        lose(warden, pool, cell_step_name(step), errno);
        return;
    }
    auto_close int noise_write = noise[1];
    zygote->noise = noise[0];
    fd_set_nonblocking(zygote->noise, true);
    fd_set_nonblocking(ours, true); /* one that stalls must not hold up the warden */
    struct zygote_setup setup = {.socket = theirs,
                                 .noise = noise_write,
                                 .template = template_fd(template),
                                 .own_ids = !warden->rootless,
                                 .owner = identity_slot_owner(warden),
                                 .plan = &pool->zygote_plan};
    struct clone_args args = {.flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS};
    auto_close int group = cgroup_open_zygotes(&warden->cgroups);
    if (group >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)group;
    }
    zygote->program_changed = changed_at(pool->zygote_plan.candidates);
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid == 0)
        cell_zygote_main(&setup);
    zygote->pid = pid;
    zygote->state = ZYGOTE_STARTING;
    zygote->forks = zygote->bad_children = 0;
    zygote->started++;
    zygote->started_us = clock_us();
    zygote->patience_us = zygote->started_us + PATIENCE_US;
    if (pid < 0 || loop_watch(warden, &zygote->watch, take_fd(&ours), NULL, on_zygote) < 0)
        lose(warden, pool, "start it", errno);
}

void zygote_stop(struct warden *warden, struct pool *pool)
{
    if (pool->zygote.state == ZYGOTE_NONE || pool->zygote.state == ZYGOTE_GIVEN_UP)
        return;
    loop_forget(warden, &pool->zygote.watch);
    end_process(&pool->zygote);
    cleanup_close(&pool->zygote.noise);
    pool->zygote.noise = -1;
    pool->zygote.state = ZYGOTE_NONE;
    fail_promised(warden, pool);
}

int zygote_fork(const struct warden *warden, struct pool *pool, struct cell *cell)
{
    int fds[ENTER_FDS_MAX];
    size_t count = 0;
    struct enter_message message = {.has_value = cell->streams[STREAM_VALUE] >= 0,
                                    .own_ids = !warden->rootless,
                                    .group_limits = cell->cgroup.kind != CGROUP_NONE,
                                    .into_cgroup = cell->cgroup.kind == CGROUP_V2,
                                    .number = cell->number};
    memcpy(message.limit, cell->limit, sizeof message.limit);
    memcpy(fds, cell->slot, sizeof cell->slot);
    count = SLOT_NAMESPACES;
    if (cell->identity)
        memcpy(fds, cell->identity->spaces, sizeof cell->identity->spaces);
    for (int i = 0; i < CELL_CGROUP_FILES_MAX && cell->cgroup.join_files[i] >= 0; i++)
        fds[count++] = cell->cgroup.join_files[i];
    if (message.into_cgroup)
        fds[count++] = cell->cgroup.dirs[0];
    message.cgroup_files = (uint32_t)(count - SLOT_NAMESPACES);
    for (int i = 0; i < (message.has_value ? STREAM_COUNT : STREAM_VALUE); i++)
        fds[count++] = cell->streams[i];
    auto_close int theirs = -1;
    if (spawn_talk_pair(&cell->forked_talk, &theirs) < 0)
        return -1;
    fds[count++] = theirs;
    cell->warmth = WARMTH_FORKED;
    cell->patience_us = clock_us() + ANSWER_US;
    /* To warm up instead of waiting a little for its program only pays when there is time for it. */
    cell->rushed = cell->ordered || pool_is_crowded(warden);
    message.wait_ms = cell->rushed ? RUSH_WAIT_MS : 0;
    pool->zygote.forks++;
    return fd_send(pool->zygote.watch.fd, &message, sizeof message, fds, count);
}

static bool is_promised(const struct warden *warden, const struct pool *pool)
{
    for (const struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->pool == pool && cell->forked_talk >= 0 && cell->phase < PHASE_RUNNING)
            return true;
    return false;
}

void zygote_tick(struct warden *warden, struct pool *pool, uint64_t now_us)
{
    struct zygote *zygote = &pool->zygote;
    if ((zygote->state == ZYGOTE_STARTING || zygote->state == ZYGOTE_PROVING) && now_us > zygote->patience_us)
        lose(warden, pool, "start it", ETIMEDOUT);
    if (zygote->state == ZYGOTE_SERVING && now_us - zygote->checked_us > SECOND_US && !is_promised(warden, pool)) {
        zygote->checked_us = now_us;
        struct timespec changed = changed_at(pool->zygote_plan.candidates);
        if (zygote->forks >= FORKS_MAX || now_us - zygote->started_us > AGE_US ||
            changed.tv_sec != zygote->program_changed.tv_sec || changed.tv_nsec != zygote->program_changed.tv_nsec)
            zygote_stop(warden, pool);
    }
    if (zygote->state == ZYGOTE_NONE && (pool->target || pool->floor) && now_us >= pool->retry_us)
        zygote_start(warden, pool);
}

static bool is_known(const struct warden *warden, pid_t pid)
{
    for (const struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->init_pid == pid || cell->program_pid == pid || cell->count_pid == pid)
            return true;
    for (const struct pool *pool = warden->pools; pool; pool = pool->next)
        if (pool->zygote.pid == pid)
            return true;
    return warden->maker.pid == pid || scout_owns(warden, pid);
}

void zygote_reap_strangers(struct warden *warden)
{
    siginfo_t info = {0};
    for (const struct pool *pool = warden->pools; pool; pool = pool->next)
        if (is_promised(warden, pool))
            return; /* whom it forked is not known yet */
    for (const struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->being_made)
            return; /* nor whom the maker did */
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid > 0 &&
           !is_known(warden, info.si_pid)) {
        waitpid(info.si_pid, NULL, __WALL);
        if (warden->maker.helper == info.si_pid)
            warden->maker.helper = 0;
        info.si_pid = 0;
        if (warden->strangers)
            warden->strangers--;
    }
}
