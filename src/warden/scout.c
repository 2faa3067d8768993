/* Owns the scout's process and whose question it is working on. */
#include "warden/scout.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cell/steps.h"
#include "warden/warden.h"

/* An honest program's memory is read in microseconds, once the scout has a processor. */
#define PATIENCE_US 50000
/* Scouts given up on that still wait for some program; beyond that addresses go unread. */
#define LOST_MAX 8

static _Noreturn void scout_main(int socket)
{
    struct scout_question question;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cordon-scout");
    spawn_keep_precedence();
    descriptors_keep(&socket, 1);
    while (recv(socket, &question, sizeof question, 0) == sizeof question) {
        struct scout_answer answer = {.length = -1};
        struct iovec local = {answer.bytes, question.length < SCOUT_BYTES ? question.length : SCOUT_BYTES};
        struct iovec remote = {(void *)(uintptr_t)question.address, local.iov_len};
        answer.length = (int32_t)process_vm_readv(question.pid, &local, 1, &remote, 1, 0);
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

static void reap_lost(struct warden *warden)
{
    for (unsigned i = 0; i < warden->scout.lost_count;)
        if (waitpid(warden->scout.lost[i], NULL, WNOHANG) == 0)
            i++;
        else
            warden->scout.lost[i] = warden->scout.lost[--warden->scout.lost_count];
}

static void dismiss(struct warden *warden)
{
    struct scout *scout = &warden->scout;
    if (scout->pid <= 0)
        return;
    kill(scout->pid, SIGKILL);
    loop_forget(warden, &scout->watch);
    scout->lost[scout->lost_count++] = scout->pid;
    scout->pid = 0;
    reap_lost(warden);
}

static void conclude(struct warden *warden, const struct scout_answer *answer)
{
    struct cell *cell = warden->scout.cell;
    warden->scout.cell = NULL;
    if (cell)
        notify_observed(warden, cell, answer);
}

static void on_answer(struct warden *warden, struct cell *cell, uint32_t events)
{
    (void)cell;
    (void)events;
    struct scout_answer answer;
    if (recv(warden->scout.watch.fd, &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer) {
        answer.length = -1;
        dismiss(warden);
    }
    conclude(warden, &answer);
    scout_serve(warden);
}

static bool muster(struct warden *warden)
{
    struct scout *scout = &warden->scout;
    if (scout->pid > 0)
        return true;
    reap_lost(warden);
    int pair[2];
    if (scout->lost_count >= LOST_MAX || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    auto_close int ours = pair[0], theirs = pair[1];
    scout->pid = fork();
    if (scout->pid == 0)
        scout_main(theirs);
    if (scout->pid > 0 && loop_watch(warden, &scout->watch, take_fd(&ours), NULL, on_answer) == 0)
        return true;
    dismiss(warden);
    return false;
}

void scout_serve(struct warden *warden)
{
    struct scout *scout = &warden->scout;
    if (scout->cell)
        return;
    for (struct cell *cell = warden->cells, *next; cell && !scout->cell; cell = next) {
        next = cell->next;
        if (!cell->observed_waits)
            continue;
        struct scout_question question = notify_question(cell);
        scout->cell = cell;
        scout->deadline_us = clock_us() + PATIENCE_US;
        if (!muster(warden) || send(scout->watch.fd, &question, sizeof question, MSG_NOSIGNAL) < 0)
            conclude(warden, &(struct scout_answer){.length = -1});
    }
}

void scout_tick(struct warden *warden, uint64_t now_us)
{
    if (!warden->scout.cell || now_us < warden->scout.deadline_us)
        return;
    dismiss(warden);
    conclude(warden, &(struct scout_answer){.length = -1});
    scout_serve(warden);
}

uint64_t scout_next_tick(const struct warden *warden)
{
    return warden->scout.cell ? warden->scout.deadline_us : UINT64_MAX;
}

void scout_forget(struct warden *warden, const struct cell *cell)
{
    if (warden->scout.cell != cell)
        return;
    /* The answer would be taken for the next question's. */
    dismiss(warden);
    warden->scout.cell = NULL;
}

bool scout_owns(const struct warden *warden, pid_t pid)
{
    for (unsigned i = 0; i < warden->scout.lost_count; i++)
        if (warden->scout.lost[i] == pid)
            return true;
    return warden->scout.pid == pid;
}

void scout_close(struct warden *warden)
{
    dismiss(warden);
}
