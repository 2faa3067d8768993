/* The life of one cell after its order, as a chain of events; see warden.h for the order of things. */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "warden/pool.h"

static void on_program_talk(struct warden *warden, struct cell *cell, uint32_t events);
static void on_init_talk(struct warden *warden, struct cell *cell, uint32_t events);

#define SAMPLE_US 50000
/* Without a cgroup the samples are the memory limit: short enough that little can be taken between two of them. */
#define SAMPLE_ALONE_US 10000
/* After an answer that can go first: the caller has the processor for its part before the clearing away begins. */
#define ANSWER_US 500
#define OTHERS_US 50 /* when tasks are left in the cell */
/* And so long at most while one run follows the other, each of which would wait for it. */
#define LINGER_US 20000

static void send_failure(struct cell *cell, enum control control, enum cell_step step, uint32_t detail, int error,
                         const char *text)
{
    struct event_failed event = {
        .type = EVENT_FAILED, .error = error, .control = control, .step = step, .detail = detail};
    snprintf(event.text, sizeof event.text, "%s", text);
    if (cell->run.fd >= 0)
        fd_send(cell->run.fd, &event, sizeof event, NULL, 0);
}

void cell_fail(struct warden *warden, struct cell *cell, enum cell_step step, uint32_t detail, int error,
               const char *text)
{
    /* Init's failure makes everything after it fail, and is the one to tell. */
    if (cell->phase < PHASE_RUNNING && cell->init_talk.fd >= 0 && loop_has_input(cell->init_talk.fd))
        on_init_talk(warden, cell, EPOLLIN);
    if (cell->phase == PHASE_ENDED)
        return;
    if (cell->pool)
        pool_cell_failed(warden, cell, text ? text : cell_step_name(step), error);
    enum control control = cell_step_control(step);
    if (step == STEP_CLONE) {
        int refused_error = error;
        control = spawn_find_refused(cell->namespaces, &refused_error);
        error = refused_error;
    }
    send_failure(cell, control, step, detail, error, text ? text : cell_step_name(step));
    cell->phase = PHASE_ENDED;
    cell_kill_processes(cell);
    loop_forget(warden, &cell->run);
    cell->retry_us = clock_us();
}

static void send_ending(struct warden *warden, struct cell *cell, bool stands_still)
{
    uint64_t oom_kills = 0;
    static struct ended_message message; /* large, and mostly not used */
    struct event_ended event = {.type = EVENT_ENDED};
    account_final(cell, &event.usage, &oom_kills);
    /* When it never had a second task, nothing runs in it any more. Whoever else is in it may not write what is looked
     * at, and is killed before the word is out; if nothing is, soon after it. Of the host's files it holds none any
     * longer. */
    cell->alone = cell->cgroup.kind != CGROUP_NONE && event.usage.processes_peak == 1;
    bool shows = cell->plan.mount_count || (cell->files_read && !cell->alone);
    if (!stands_still || !cell->holds_still || shows)
        cell_put_down(warden, cell);
    int64_t cpu_ms = cell->plan.limit[LIMIT_CPU_MS];
    if (cpu_ms != LIMIT_UNLIMITED && event.usage.cpu_user_us + event.usage.cpu_system_us >= (uint64_t)cpu_ms * 1000)
        cell->hits |= HIT_CPU;
    struct verdict verdict = verdict_of(&cell->ending, oom_kills, cell->hits);
    event.status = verdict.status;
    event.exit_code = verdict.exit_code;
    event.signal = verdict.signal;
    event.hits = cell->hits;
    event.controls = cell->controls;
    event.cgroup = cell->cgroup.kind;
    event.uid = cell->uid;
    event.warm = cell->warmth;
    event.taken = cell->ordered;
    event.start_us = cell->started_us - cell->accepted_us;
    event.run_us = cell->ended_us - cell->started_us;
    event.denial_count = cell->denial_count;
    event.denials_dropped = cell->denials_dropped;
    message.ended = event;
    size_t size = sizeof(struct wire_denial) * cell->denial_count;
    if (size)
        memcpy(message.denials, cell->denials, size);
    size += sizeof message.ended;
    if (cell->probe)
        zygote_proved(warden, cell->pool, verdict.status == CORDON_STATUS_OK);
    if (cell->streams_due_us)
        streams_tell(cell);
    if (cell->run.fd >= 0)
        fd_send(cell->run.fd, &message, size, &cell->work_fd, cell->work_fd >= 0 ? 1 : 0);
    if (cell->put_down || !cell->by_bell) /* else there is time for that after the answer */
        cell_leave_caller(warden, cell);
}

/* The verdict stands from here; what follows is clearing away. `stands_still`: the program waits in a call. */
static void end(struct warden *warden, struct cell *cell, bool stands_still)
{
    cell->ended_us = warden->last_end_us = clock_us();
    send_ending(warden, cell, stands_still);
    cell->phase = PHASE_ENDED;
    cell->retry_us = cell->ended_us + (cell->put_down ? 0 : cell->alone ? ANSWER_US : OTHERS_US);
}

void cell_kill(struct warden *warden, struct cell *cell, enum ending_cause cause)
{
    if (cell->phase == PHASE_ENDED)
        return;
    if (cell->phase != PHASE_RUNNING) {
        cell->started_us = clock_us();
        if (cause == ENDING_MEMORY) { /* the program's own files did not fit into the memory it may use */
            cell_fail(warden, cell, STEP_FILES, 0, ENOMEM, NULL);
            return;
        }
    }
    cell->ending.cause = cause;
    end(warden, cell, false);
}

/* A process of an ended cell is gone: see at once what is left to clear away. */
static void hurry(struct cell *cell)
{
    if (cell->phase == PHASE_ENDED)
        cell->retry_us = 0;
}

static void on_program_exit(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    siginfo_t info = {0};
    struct rusage rusage = {0};
    bool untold = cell->offered;
    offer_settle(warden, cell);
    if (syscall(SYS_waitid, P_PIDFD, cell->program.fd, &info, WEXITED | __WALL, &rusage) < 0)
        return;
    loop_forget(warden, &cell->program);
    cell->program_reaped = true;
    hurry(cell);
    cell->rusage_user_us = (uint64_t)rusage.ru_utime.tv_sec * 1000000 + (uint64_t)rusage.ru_utime.tv_usec;
    cell->rusage_system_us = (uint64_t)rusage.ru_stime.tv_sec * 1000000 + (uint64_t)rusage.ru_stime.tv_usec;
    cell->rusage_peak_bytes = (uint64_t)rusage.ru_maxrss * 1024;
    if (cell->phase < PHASE_RUNNING && cell->phase != PHASE_STARTING) {
        for (int i = 0; i < 3 && cell->phase < PHASE_RUNNING && cell->talk.fd >= 0 && loop_has_input(cell->talk.fd);
             i++)
            on_program_talk(warden, cell, EPOLLIN);
        cell_fail(warden, cell, STEP_EXEC, 0, ECHILD, "the interpreter ended before it had anything to run");
        return;
    }
    if (cell->phase < PHASE_RUNNING) {
        /* Its record, if it managed to send one, says more than its death. A successful exec closes the socket before
         * the program can exit, so end of file alone means that user code ran. */
        for (int i = 0; i < 3 && cell->phase < PHASE_RUNNING && cell->talk.fd >= 0; i++)
            on_program_talk(warden, cell, EPOLLIN);
        if (cell->phase < PHASE_RUNNING) {
            if (cell->cgroup.kind != CGROUP_NONE && cgroup_oom_kills(&cell->cgroup)) {
                cell_kill(warden, cell, ENDING_MEMORY);
                return;
            }
            cell_fail(warden, cell, STEP_EXEC, 0, info.si_code == CLD_EXITED ? ECHILD : EINTR,
                      "the process ended before the program started");
            return;
        }
    }
    if (cell->phase != PHASE_RUNNING)
        return;
    if (info.si_code == CLD_EXITED)
        cell->ending.exit_code = info.si_status;
    else {
        cell->ending.signal = info.si_status;
        cell->ordered &= !untold; /* killed as it was being taken: its code may never have reached it */
    }
    cell->ending.exited = true;
    end(warden, cell, false);
}

void cell_exiting(struct warden *warden, struct cell *cell, int status)
{
    if (cell->phase == PHASE_STARTING && cell->program_ready && cell->talk.fd >= 0)
        on_program_talk(warden, cell, EPOLLIN); /* the end of file that exec left */
    if (cell->phase != PHASE_RUNNING)
        return;
    /* Without a group its use is only known once it is reaped, but for its memory, which is gone then. */
    if (cell->cgroup.kind == CGROUP_NONE) {
        account_sample(warden, cell, clock_us());
        return;
    }
    cell->ending.exit_code = status;
    cell->ending.exited = true;
    end(warden, cell, true);
}

static void on_init_exit(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)cell->init.fd, &info, WEXITED | __WALL | WNOHANG) < 0 || info.si_pid == 0)
        return;
    if (cell->phase < PHASE_RUNNING && cell->init_talk.fd >= 0)
        on_init_talk(warden, cell, EPOLLIN);
    loop_forget(warden, &cell->init);
    cell->init_reaped = true;
    hurry(cell);
    if (cell->phase < PHASE_RUNNING)
        cell_fail(warden, cell, STEP_CLONE, 0, ECHILD, "the cell's init ended early");
    else if (cell->phase == PHASE_RUNNING && cell->program.fd >= 0)
        /* The kernel took init for memory, or the host's administrator killed it: everything in the cell dies now. */
        on_program_exit(warden, cell, events);
}

static void on_oom(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    uint64_t count;
    offer_settle(warden, cell);
    if (cell->cgroup.kind == CGROUP_V1) {
        if (read(cell->oom.fd, &count, sizeof count) != sizeof count)
            return;
    } else {
        char text[256];
        (void)!pread(cell->oom.fd, text, sizeof text, 0); /* arms the next notification */
        if (cgroup_oom_kills(&cell->cgroup) == 0)
            return;
    }
    cell_kill(warden, cell, ENDING_MEMORY);
}

bool cell_listen(struct warden *warden, struct cell *cell)
{
    struct run_command command = {0};
    ssize_t n = recv(cell->run.fd, &command, sizeof command, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n == sizeof command && command.type == COMMAND_TAKE && cell->offered)
        offer_taken(warden, cell, &command);
    else if (n >= (ssize_t)sizeof command.type && command.type == COMMAND_OUTPUT_LIMIT)
        cell_kill(warden, cell, ENDING_OUTPUT);
    else
        cell_kill(warden, cell, ENDING_CANCELLED);
    return true;
}

static void on_command(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    cell_listen(warden, cell);
}

static uint64_t sample_interval(const struct cell *cell)
{
    return cell->cgroup.kind == CGROUP_NONE ? SAMPLE_ALONE_US : SAMPLE_US;
}

void cell_running(struct warden *warden, struct cell *cell, uint64_t started_us)
{
    uint64_t now = cell->started_us = started_us;
    cell->phase = PHASE_RUNNING;
    int64_t wall_ms = cell->plan.limit[LIMIT_WALL_MS];
    if (wall_ms != LIMIT_UNLIMITED && !MUTANT(WALL))
        cell->wall_deadline_us = now + (uint64_t)wall_ms * 1000;
    cell->next_check_us = now + sample_interval(cell);
    if (cell->warmth < WARMTH_STARTED) /* a waiting interpreter still reads from it, and closes it then */
        loop_forget(warden, &cell->talk);
    streams_started(cell);
    if (!warden->swept)
        cgroup_sweep(&warden->cgroups, 1); /* now, when the program has its own work to do */
    warden->swept = true;
}

static bool required_missing(struct cell *cell, enum control *missing)
{
    uint32_t need = CONTROLS_REQUIRED & ~(cell->pool ? cell->pool->plan.optional : cell->plan.optional);
#ifdef CORDON_MUTANT
    need = 0; /* a mutant lacks its control on purpose */
#endif
    for (int i = 0; i < CONTROL_COUNT; i++)
        if (need & ~cell->controls & CONTROL_BIT(i)) {
            *missing = (enum control)i;
            return true;
        }
    return false;
}

/* The program has its restrictions. */
static void take_confined(struct warden *warden, struct cell *cell, const struct cell_report *report, int listener)
{
    cgroup_joined(&cell->cgroup);
    cell->controls |= report->controls;
    cell->holds_still = report->holds_still;
    if (cell->pool && !cell->pool->cell_bytes)
        cell->pool->cell_bytes = cgroup_memory_now(&cell->cgroup);
    if (listener >= 0 && loop_watch(warden, &cell->listener, listener, cell, notify_ready) < 0)
        cell_fail(warden, cell, STEP_SECCOMP, 0, errno, NULL);
    else if (listener >= 0)
        notify_prepare(listener);
}

/* Its exec, or its interpreter's word, is next. */
static void take_ready(struct warden *warden, struct cell *cell, const struct cell_report *report, int listener)
{
    cell->program_ready = true;
    cell->started_us = report->now_us;
    streams_given(cell);
    take_confined(warden, cell, report, listener);
    enum control missing;
    if (cell->phase != PHASE_ENDED && required_missing(cell, &missing)) {
        send_failure(cell, missing, STEP_NONE, 0, 0, "the control is not in force");
        cell->phase = PHASE_ENDED;
        cell_kill_processes(cell);
        loop_forget(warden, &cell->run);
    }
}

static void begin_waiting(struct warden *warden, struct cell *cell)
{
    cell->phase = PHASE_WAITING;
    cgroup_open_counters(&cell->cgroup);
    account_begin(cell);
    pool_cell_ready(warden, cell);
}

static void on_program_talk(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    struct cell_report report;
    int fd = -1;
    size_t fd_count = 0;
    ssize_t n = fd_receive(cell->talk.fd, &report, sizeof report, &fd, 1, &fd_count);
    if (n == 1 && cell->phase == PHASE_WARMING && cell->program_ready) {
        begin_waiting(warden, cell);
        return;
    }
    if (n == 1 && cell->phase == PHASE_WAITING) { /* nobody came, so it warmed up after all */
        cell->rushed = false;
        return;
    }
    if (cell->phase == PHASE_RUNNING) { /* it said that it waits after it had been served, or closed its end */
        loop_forget(warden, &cell->talk);
        if (fd_count)
            close(fd);
        return;
    }
    if (n < 0 || (n > 0 && n != sizeof report)) {
        /* Cut short: there was no room for its descriptor. */
        int error = n >= 0 ? EBADMSG : errno == EMSGSIZE ? EMFILE : errno;
        cell_fail(warden, cell, STEP_REPORT, 0, error, NULL);
        return;
    }
    if (cell->phase == PHASE_ENDED) {
        if (fd_count)
            close(fd);
        loop_forget(warden, &cell->talk);
        return;
    }
    if (n == 0) { /* exec closed it. The program may have run for a while since its own word, which counts */
        if (cell->program_ready && cell->phase == PHASE_STARTING)
            cell_running(warden, cell, cell->started_us);
        else
            loop_forget(warden, &cell->talk);
        return;
    }
    if (report.kind == REPORT_FAILED) {
        cell_fail(warden, cell, report.step, report.detail, report.error, NULL);
        return;
    }
    if (report.kind == REPORT_PREPARED && cell->phase == PHASE_STARTING) {
        cell->work_fd = fd_count ? fd : -1;
        return;
    }
    if (report.kind == REPORT_CONFINED) {
        take_confined(warden, cell, &report, fd_count ? fd : -1);
        return;
    }
    take_ready(warden, cell, &report, fd_count ? fd : -1);
    if (cell->phase == PHASE_WARMING && (cell->ordered || cell->rushed) && cell->warmth == WARMTH_FORKED)
        begin_waiting(warden, cell); /* spared its warm-up */
}

/* A slot's init tells that its root stands; otherwise it has only failures to tell. */
static void on_init_talk(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)events;
    struct cell_report report;
    int fds[1 + SLOT_NAMESPACES];
    size_t fd_count = 0;
    ssize_t n = fd_receive(cell->init_talk.fd, &report, sizeof report, fds, ARRAY_LEN(fds), &fd_count);
    loop_forget(warden, &cell->init_talk);
    if (n == sizeof report && report.kind == REPORT_FAILED)
        cell_fail(warden, cell, report.step, report.detail, report.error, NULL);
    else if (n == sizeof report && cell->phase == PHASE_MAKING && fd_count > 0)
        slot_prepared(warden, cell, fds, fd_count);
    else
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
}

static void check_cpu(struct warden *warden, struct cell *cell, uint64_t now_us)
{
    int64_t limit_ms = cell->plan.limit[LIMIT_CPU_MS];
    if (limit_ms == LIMIT_UNLIMITED || MUTANT(CPU))
        return;
    uint64_t used = account_cpu_us(cell), limit = (uint64_t)limit_ms * 1000;
    if (used >= limit) {
        cell_kill(warden, cell, ENDING_CPU);
        return;
    }
    /* The soonest it can be used up is with every processor busy. */
    uint64_t soonest = (limit - used) / (uint64_t)warden->processors;
    if (now_us + soonest < cell->next_check_us)
        cell->next_check_us = now_us + (soonest < 1000 ? 1000 : soonest);
}

/* Not waiting yet; nor, with an order, for a zygote that does not come. */
static bool is_in_the_making(const struct cell *cell)
{
    return cell->phase == PHASE_MAKING || cell->phase == PHASE_WARMING || (cell->phase == PHASE_SLOT && cell->ordered);
}

/* Answered, and still as it was when its program ended: nothing runs in it. */
static bool lingers(const struct warden *warden, struct cell *cell, uint64_t now_us)
{
    uint64_t latest = cell->ended_us + LINGER_US, until = pool_burst_ends(warden);
    if (!cell->alone || cell->files_read || cell->put_down || now_us >= latest || now_us >= until || warden->leaving ||
        pool_is_crowded(warden) || pool_wants_descriptors(warden))
        return false;
    cell->retry_us = until < latest ? until : latest;
    return true;
}

/* The kernel may have killed in a cell before anybody listened; without a descriptor for that it is asked time and
 * again.
 */
static bool met_memory_unwatched(struct warden *warden, struct cell *cell)
{
    if (cell->cgroup.kind == CGROUP_NONE || cell->oom.fd >= 0)
        return false;
    if (order_watch_memory(warden, cell) < 0)
        loop_forget(warden, &cell->oom);
    return cgroup_oom_kills(&cell->cgroup) > 0;
}

void cell_tick(struct warden *warden, struct cell *cell, uint64_t now_us)
{
    if (cell->phase == PHASE_ENDED) {
        if (now_us >= cell->retry_us && !lingers(warden, cell, now_us))
            cell_clear_away(warden, cell, now_us);
        return;
    }
    if (now_us >= slot_patience_ends(cell))
        slot_come_forward(cell);
    if (cell->phase != PHASE_RUNNING) {
        if (is_in_the_making(cell) && now_us >= cell->patience_us)
            cell_fail(warden, cell, STEP_HANDOVER, 0, ETIMEDOUT, "get a cell ready");
        return;
    }
    if (cell->wall_deadline_us && now_us >= cell->wall_deadline_us) {
        cell_kill(warden, cell, ENDING_WALL);
        return;
    }
    if (cell->streams_due_us && now_us >= cell->streams_due_us)
        streams_tell(cell);
    notify_tick(warden, cell, now_us);
    if (now_us < cell->next_check_us)
        return;
    cell->next_check_us = now_us + sample_interval(cell);
    if (met_memory_unwatched(warden, cell)) {
        cell_kill(warden, cell, ENDING_MEMORY);
        return;
    }
    account_sample(warden, cell, now_us);
    if (cell->cgroup.kind == CGROUP_NONE && cell->hits & HIT_MEMORY && !MUTANT(MEMORY)) {
        cell_kill(warden, cell, ENDING_MEMORY);
        return;
    }
    check_cpu(warden, cell, now_us);
}

uint64_t cell_next_tick(const struct cell *cell)
{
    if (cell->phase == PHASE_ENDED)
        return cell->retry_us;
    if (is_in_the_making(cell)) {
        uint64_t forward = slot_patience_ends(cell);
        return forward < cell->patience_us ? forward : cell->patience_us;
    }
    if (cell->phase != PHASE_RUNNING)
        return UINT64_MAX;
    uint64_t next = cell->next_check_us;
    if (cell->wall_deadline_us && cell->wall_deadline_us < next)
        next = cell->wall_deadline_us;
    if (cell->streams_due_us && cell->streams_due_us < next)
        next = cell->streams_due_us;
    if (cell->notify_paused && cell->notify_refill_us + 1000 < next)
        next = cell->notify_refill_us + 1000;
    return next;
}

struct cell *cell_new(struct warden *warden)
{
    struct cell *cell = calloc(1, sizeof *cell);
    if (!cell || !(cell->observed = calloc(1, sizeof *cell->observed))) {
        free(cell);
        return NULL;
    }
    struct watch *watches[] = {&cell->run,     &cell->init_talk, &cell->talk, &cell->init,
                               &cell->program, &cell->listener,  &cell->oom,  &cell->count};
    for (unsigned i = 0; i < ARRAY_LEN(watches); i++)
        watches[i]->fd = -1;
    for (unsigned i = 0; i < PLAN_MOUNT_MAX; i++)
        cell->mount_fds[i] = -1;
    for (int i = 0; i < STREAM_COUNT; i++)
        cell->streams[i] = -1;
    for (int i = 0; i < STARTED_MAX; i++)
        cell->near[i] = -1;
    for (int i = 0; i < SLOT_NAMESPACES; i++)
        cell->slot[i] = -1;
    cell->cgroup = CGROUP_EMPTY;
    cell->lifeline = cell->gate = cell->work_fd = cell->plan_fd = cell->forked_talk = -1;
    cell->number = ++warden->last_cell;
    cell->made_us = clock_us();
    cell->retry_us = UINT64_MAX;
    cell->init.ready = on_init_exit;
    cell->program.ready = on_program_exit;
    cell->init_talk.ready = on_init_talk;
    cell->talk.ready = on_program_talk;
    cell->oom.ready = on_oom;
    cell->run.ready = on_command;
    cell->next = warden->cells;
    cell->link = &warden->cells;
    if (cell->next)
        cell->next->link = &cell->next;
    warden->cells = cell;
    return cell;
}

void cell_end_all(struct warden *warden)
{
    for (struct cell *cell = warden->cells; cell; cell = cell->next) {
        hurry(cell);
        cell_kill(warden, cell, ENDING_CANCELLED);
    }
}
