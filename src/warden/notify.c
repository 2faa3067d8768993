/* Seccomp notifications: records what was refused, answers with the policy's errno. The answer to a refused call never
 * depends on memory the program could change; addresses are read, by the scout, for the report only. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cell/policy.h"
#include "warden/warden.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

/* A burst, then a bounded rate: about 2000 observed or 200 refused calls a second. Calls beyond that wait, and a kill
 * still reaches them. */
#define TOKENS_BURST 512
#define REFILL_US    500
#define REFUSAL_COST 10
#define ROUND_MAX    16
#define DOMAIN_PORT  53

#define NOTIF_SET_FLAGS       SECCOMP_IOW(4, uint64_t)
#define NOTIF_FD_SYNC_WAKE_UP 1UL

static void record(struct cell *cell, const char *kind, const char *what, const char *hint)
{
    for (uint32_t i = 0; i < cell->denial_count; i++)
        if (!strcmp(cell->denials[i].what, what)) {
            cell->denials[i].count++;
            return;
        }
    if (!cell->denials)
        cell->denials = calloc(DENIALS_MAX, sizeof *cell->denials);
    if (!cell->denials || cell->denial_count == DENIALS_MAX) {
        cell->denials_dropped++;
        return;
    }
    struct wire_denial *denial = &cell->denials[cell->denial_count++];
    *denial = (struct wire_denial){.count = 1};
    snprintf(denial->kind, sizeof denial->kind, "%s", kind);
    snprintf(denial->what, sizeof denial->what, "%s", what);
    snprintf(denial->hint, sizeof denial->hint, "%s", hint);
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    char bytes[SCOUT_BYTES];
};

/* "93.184.216.34:80" for an address outside the cell; false for loopback and local sockets. */
static bool outside_address(const union address *at, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    if (at->any.sa_family == AF_INET) {
        if ((ntohl(at->v4.sin_addr.s_addr) >> 24) == 127 || at->v4.sin_addr.s_addr == 0)
            return false;
        inet_ntop(AF_INET, &at->v4.sin_addr, host, sizeof host);
        snprintf(text, size, "%s:%u", host, ntohs(at->v4.sin_port));
        return true;
    }
    if (at->any.sa_family == AF_INET6) {
        if (IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr))
            return false;
        inet_ntop(AF_INET6, &at->v6.sin6_addr, host, sizeof host);
        snprintf(text, size, "[%s]:%u", host, ntohs(at->v6.sin6_port));
        return true;
    }
    return false;
}

/* Whether the address is that of a name server. Every resolver asks one on the loopback, for the cell's resolv.conf
 * names none; a program cannot listen there, because port 53 needs a right that no program has. So the look-up fails,
 * and the kernel's word for it is this call. The name that is looked up is in a later message, which nobody reads: to
 * have every send on a connected socket reported would slow all local traffic down. */
static bool is_name_server(const union address *at)
{
    if (at->any.sa_family == AF_INET)
        return ntohs(at->v4.sin_port) == DOMAIN_PORT;
    return at->any.sa_family == AF_INET6 && ntohs(at->v6.sin6_port) == DOMAIN_PORT;
}

struct scout_question notify_question(const struct cell *cell)
{
    const struct seccomp_notif *call = cell->observed;
    bool send = call->data.nr == SYS_sendto;
    uint64_t length = call->data.args[send ? 5 : 2];
    return (struct scout_question){.pid = (int32_t)call->pid,
                                   .address = call->data.args[send ? 4 : 1],
                                   .length = length < SCOUT_BYTES ? (uint32_t)length : SCOUT_BYTES};
}

void notify_observed(struct warden *warden, struct cell *cell, const struct scout_answer *answer)
{
    const struct seccomp_notif *call = cell->observed;
    const struct policy_notice *notice = policy_find(call->data.nr, (const uint64_t *)call->data.args);
    cell->observed_waits = false;
    if (cell->listener.fd < 0 || cell->phase == PHASE_ENDED)
        return;
    union address at = {.bytes = {0}};
    char address[80] = "unknown address", what[96];
    if (answer->length > 0)
        memcpy(at.bytes, answer->bytes, (size_t)answer->length);
    /* The process may have died and its pid may name another since: then this was not its address. */
    uint64_t id = call->id;
    bool outside = answer->length <= 0 || outside_address(&at, address, sizeof address);
    bool look_up = !outside && is_name_server(&at);
    if ((outside || look_up) && notice && ioctl(cell->listener.fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0) {
        snprintf(what, sizeof what, look_up ? "name look-up" : "%s(%.64s)", notice->name, address);
        record(cell, "network", what, notice->hint);
    }
    struct seccomp_notif_resp response = {.id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(cell->listener.fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
    if (!cell->notify_paused)
        loop_rearm(warden, &cell->listener, true);
}

/* A call that tells something unknown may have used anything: then nothing of the cell is used again. */
static void take_note(struct warden *warden, struct cell *cell, const struct seccomp_notif *call,
                      enum policy_subject subject)
{
    cell->used_network |= subject != POLICY_IPC && subject != POLICY_ENDING;
    cell->used_ipc |= subject != POLICY_NETWORK && subject != POLICY_ENDING;
    if (subject != POLICY_ENDING)
        return;
    cell->notify_tokens++; /* once in the life of a process, which costs the cell more than this */
    if (call->pid == (uint32_t)cell->program_pid)
        cell_exiting(warden, cell, (int)(call->data.args[0] & 0xff));
}

static void answer(struct warden *warden, struct cell *cell, const struct seccomp_notif *call)
{
    struct seccomp_notif_resp response = {.id = call->id, .error = -EPERM};
    bool foreign = call->data.arch != NATIVE_ARCH;
    const struct policy_notice *notice = policy_find(foreign ? -1 : call->data.nr, (const uint64_t *)call->data.args);
    if (!notice) {
        char what[32];
        snprintf(what, sizeof what, "system call %d", call->data.nr);
        record(cell, "syscall", what, "this call is not part of what programs in a cell may use");
    } else if (notice->action == POLICY_KILL) {
        record(cell, "syscall", notice->name, notice->hint);
        cell_kill(warden, cell, ENDING_DENIED);
        return;
    } else if (notice->action == POLICY_TELL) {
        take_note(warden, cell, call, notice->subject);
        if (cell->phase == PHASE_ENDED)
            return; /* killed where it stands */
        response = (struct seccomp_notif_resp){.id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    } else if (notice->action == POLICY_OBSERVE) {
        *cell->observed = *call;
        cell->observed_waits = true;
        loop_rearm(warden, &cell->listener, false);
        scout_serve(warden);
        return;
    } else {
        record(cell, "syscall", notice->name, notice->hint);
        response.error = -notice->refusal;
    }
    if (response.error)
        cell->notify_tokens -= cell->notify_tokens < REFUSAL_COST ? cell->notify_tokens : REFUSAL_COST;
    ioctl(cell->listener.fd, SECCOMP_IOCTL_NOTIF_SEND, &response); /* ENOENT: it died meanwhile */
}

static bool take_token(struct cell *cell, uint64_t now_us)
{
    if (cell->notify_refill_us == 0) {
        cell->notify_refill_us = now_us;
        cell->notify_tokens = TOKENS_BURST;
    }
    uint64_t earned = (now_us - cell->notify_refill_us) / REFILL_US;
    if (earned) {
        cell->notify_tokens += (unsigned)(earned > TOKENS_BURST ? TOKENS_BURST : earned);
        if (cell->notify_tokens > TOKENS_BURST)
            cell->notify_tokens = TOKENS_BURST;
        cell->notify_refill_us += earned * REFILL_US;
    }
    if (!cell->notify_tokens)
        return false;
    cell->notify_tokens--;
    return true;
}

/* Whoever sends a notification sleeps until it is answered: the warden may wake on the same processor. Before 6.6 it
 * wakes where it likes. */
void notify_prepare(int listener)
{
    ioctl(listener, NOTIF_SET_FLAGS, NOTIF_FD_SYNC_WAKE_UP);
}

void notify_ready(struct warden *warden, struct cell *cell, uint32_t events)
{
    if (!(events & EPOLLIN)) { /* hung up: no task is left under the filter */
        loop_forget(warden, &cell->listener);
        return;
    }
    if (cell->phase == PHASE_ENDED)
        return; /* about to be closed: a call that waits for an answer must not get one */
    offer_settle(warden, cell);
    for (int i = 0; i < ROUND_MAX && cell->listener.fd >= 0 && !cell->observed_waits; i++) {
        if (!take_token(cell, clock_us())) {
            cell->notify_paused = true;
            loop_rearm(warden, &cell->listener, false);
            return;
        }
        struct seccomp_notif call = {0};
        if (ioctl(cell->listener.fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
            if (errno != ENOENT && errno != EINTR)
                loop_forget(warden, &cell->listener);
            return;
        }
        answer(warden, cell, &call);
        if (cell->phase == PHASE_ENDED || cell->listener.fd < 0 || !loop_has_input(cell->listener.fd))
            return;
    }
}

void notify_tick(struct warden *warden, struct cell *cell, uint64_t now_us)
{
    if (cell->notify_paused && now_us >= cell->notify_refill_us + REFILL_US && cell->listener.fd >= 0) {
        cell->notify_paused = false;
        if (!cell->observed_waits)
            loop_rearm(warden, &cell->listener, true);
    }
}
