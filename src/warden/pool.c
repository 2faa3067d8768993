/* Pools of waiting cells: which cell serves an order, and how many are kept. */
#include "warden/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define SECOND_US UINT64_C(1000000)
/* While a program is young, and shortly after one ended, the warden keeps its hands free for its end and for the next
 * order, unless too little is left to serve that with. */
#define YOUNG_US    20000
#define QUIET_US    400
#define FILLING_MAX 2
/* Who has his answer has the processor first; whoever runs one program after the other takes the second offer by then.
 */
#define OFFER_US     150
#define OFFERS_EACH  2 /* of one pool */
#define OFFERS_MAX   8 /* of all pools: each holds descriptors of the caller */
#define STRANGERS_US 20000
#define TARGET_FIRST 2
#define IDLE_US      (30 * SECOND_US)
#define SHRINK_US    (10 * SECOND_US)
#define CELL_AGE_US  (600 * SECOND_US)
#define BACKOFF_US   (1 * SECOND_US)
/* Then an order is served by a cold cell instead. */
#define ORDER_PATIENCE_US (3 * SECOND_US)
#define UNKNOWN_BYTES     (16 << 20)
/* At most, between its order and its end. */
#define CELL_DESCRIPTORS 36
#define BYTES_DEFAULT    (UINT64_C(1) << 30)

static const unsigned ceilings[] = {[POOL_SLOTS] = 8, [POOL_STARTED] = 8, [POOL_FORKED] = 48};

static struct pool *find(const struct warden *warden, uint64_t key)
{
    struct pool *pool = key ? warden->pools : NULL;
    while (pool && pool->key != key)
        pool = pool->next;
    return pool;
}

static bool is_ready(const struct cell *cell)
{
    return cell->phase == PHASE_WAITING || (cell->phase == PHASE_SLOT && cell->pool->kind == POOL_SLOTS);
}

/* Cells that no order has yet, of all pools. New cells are put at the head of the list. */
static void count(const struct warden *warden)
{
    for (struct pool *pool = warden->pools; pool; pool = pool->next)
        pool->counts = (struct pool_counts){0};
    for (struct cell *cell = warden->cells; cell; cell = cell->next) {
        if (!cell->pool || cell->ordered || cell->phase >= PHASE_STARTING)
            continue;
        struct pool_counts *counts = &cell->pool->counts;
        if (cell->offered)
            counts->offered++;
        else if (is_ready(cell)) {
            counts->ready++;
            counts->oldest_ready = cell;
            if (!cell->rushed)
                counts->oldest_warm = cell;
        } else {
            counts->filling++;
            counts->oldest_filling = cell;
        }
    }
}

static uint64_t cell_bytes(const struct pool *pool)
{
    return pool->cell_bytes ? pool->cell_bytes : UNKNOWN_BYTES;
}

/* Waiting cells may hold so much memory, and half of the descriptors there are: the others are for runs. */
static bool has_room(const struct warden *warden, const struct pool *pool)
{
    uint64_t held = cell_bytes(pool), cells = 1;
    for (const struct pool *other = warden->pools; other; other = other->next) {
        unsigned of_it = other->counts.ready + other->counts.filling + other->counts.offered;
        cells += of_it;
        held += of_it * cell_bytes(other);
    }
    return held <= warden->pool_bytes_max && cells * CELL_DESCRIPTORS <= warden->descriptors_max / 2;
}

/* Nothing makes its cells any more. */
static bool is_closed(const struct pool *pool)
{
    return pool->kind == POOL_FORKED && pool->zygote.state == ZYGOTE_GIVEN_UP;
}

/* The most that wait at a time. A burst of programs finds its cells made, but those that are heavy shall not hold all
 * the memory there is for everybody's. */
static unsigned ceiling(const struct warden *warden, const struct pool *pool)
{
    unsigned most = ceilings[pool->kind];
    bool heavy = most * cell_bytes(pool) > warden->pool_bytes_max / 4;
    return pool->kind == POOL_FORKED && heavy ? most / 2 : most;
}

static unsigned at_most(unsigned count, unsigned most)
{
    return count < most ? count : most;
}

static unsigned wanted(const struct warden *warden, const struct pool *pool)
{
    if (is_closed(pool))
        return 0;
    return at_most(pool->target > pool->floor ? pool->target : pool->floor, ceiling(warden, pool));
}

/* A burst is served from what waits until little is left, undisturbed by the making of more. */
bool pool_is_short(const struct warden *warden, const struct pool *pool)
{
    return 8 * (pool->counts.ready + pool->counts.offered) < wanted(warden, pool);
}

static void make_cell(struct warden *warden, struct pool *pool)
{
    struct cell *cell = cell_new(warden);
    if (!cell)
        return;
    cell->pool = pool;
    slot_make(warden, cell);
}

static void hand_over(struct warden *warden, struct cell *cell)
{
    cell->pool->served++;
    if (cell->pool->kind == POOL_SLOTS)
        handover_slot(warden, cell);
    else
        handover_code(warden, cell);
}

/* Raising a limit of a process that runs takes a right that an ordinary user's warden has not, nor that of a superuser
 * in many a container. */
static bool may_raise(const struct warden *warden, const struct pool *pool, const int64_t *limit)
{
    static const enum limit of_process[] = {LIMIT_OPEN_FILES, LIMIT_FILE_BYTES, LIMIT_PROCESSES, LIMIT_CPU_MS,
                                            LIMIT_MEMORY_BYTES};
    bool fixed = warden->rootless || !identity_may_raise_limits();
    for (unsigned i = 0; fixed && i < ARRAY_LEN(of_process); i++)
        if (limit[of_process[i]] > pool->plan.limit[of_process[i]])
            return false;
    return true;
}

static void want_more(const struct warden *warden, struct pool *pool)
{
    pool->missed++;
    pool->target = at_most(pool->target * 2, ceiling(warden, pool));
    if (!pool->target)
        pool->target = TARGET_FIRST;
}

/* Gives the order to a cell that is ready, or soon will be; false when there is none. */
static bool serve_from(struct warden *warden, struct pool *pool, struct cell *order)
{
    count(warden);
    /* A cell in the making is as good as ready only when what makes it works. */
    bool soon = pool->kind != POOL_FORKED || pool->zygote.state == ZYGOTE_SERVING;
    struct cell *ready = pool->counts.oldest_ready, *cell = ready ? ready : soon ? pool->counts.oldest_filling : NULL;
    pool->used_us = clock_us();
    if (!ready)
        want_more(warden, pool);
    if (!cell)
        return false;
    order_move(warden, order, cell);
    slot_come_forward(cell);
    order->phase = PHASE_ENDED;
    order->gone = true;
    uint64_t patience = pool->used_us + ORDER_PATIENCE_US;
    if (patience < cell->patience_us)
        cell->patience_us = patience;
    if (ready)
        hand_over(warden, cell);
    return true;
}

static void make_for(struct warden *warden, struct pool *pool, struct cell *order)
{
    order->pool = pool;
    slot_make(warden, order);
}

bool pool_serve(struct warden *warden, struct cell *order)
{
    struct pool *pool = find(warden, order->plan.pool), *slots = find(warden, order->plan.slots);
    if (warden->rootless && order->plan.mount_count)
        return false; /* opened by path, which takes a program that does not stand in its root yet */
    if (pool && !is_closed(pool) && handover_fits(&order->plan) && may_raise(warden, pool, order->plan.limit)) {
        if (serve_from(warden, pool, order))
            return true;
        if (pool->kind == POOL_FORKED && pool->zygote.state == ZYGOTE_SERVING) {
            make_for(warden, pool, order);
            return true;
        }
    }
    if (!slots || (slots->confined && order->plan.mount_count))
        return false;
    if (!serve_from(warden, slots, order))
        make_for(warden, slots, order);
    return true;
}

void pool_cell_ready(struct warden *warden, struct cell *cell)
{
    slot_come_forward(cell);
    cell->pool->zygote.bad_children = 0;
    if (cell->pool->kind != POOL_SLOTS && cell->pool->served % 64 == 0)
        cell->pool->cell_bytes = cgroup_memory_now(&cell->cgroup);
    if (cell->ordered)
        hand_over(warden, cell);
}

void pool_cell_failed(struct warden *warden, struct cell *cell, const char *text, int error)
{
    struct pool *pool = cell->pool;
    if (cell->probe) {
        zygote_proved(warden, pool, false);
        return;
    }
    if (cell->phase >= PHASE_RUNNING || (pool->kind == POOL_SLOTS && cell->phase == PHASE_STARTING))
        return; /* of the request's own making */
    pool->failed++;
    pool->retry_us = clock_us() + BACKOFF_US;
    snprintf(pool->text, sizeof pool->text, "%s: %s", text, strerror(error));
    struct cell *cold = cell->ordered ? cell_new(warden) : NULL;
    if (cold) {
        order_move(warden, cell, cold);
        order_cold(warden, cold);
    }
    if (cell->warmth == WARMTH_FORKED)
        zygote_failed_child(warden, pool, cell->forked_talk < 0);
}

void pool_order(struct warden *warden, const struct order *order, int *fds, size_t fd_count)
{
    struct pool *pool = find(warden, order->pool) ? NULL : calloc(1, sizeof *pool);
    bool good = pool && (fd_count == 1 || fd_count == 2) && order->kind <= POOL_FORKED && order->pool &&
                (order->kind == POOL_FORKED) == (fd_count == 2) && plan_map(fds[0], &pool->plan) == 0 &&
                (fd_count == 1 || plan_map(fds[1], &pool->zygote_plan) == 0);
    if (!good) {
        if (pool)
            plan_unmap(&pool->plan);
        free(pool);
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        return;
    }
    identity_claim_owner(warden);
    pool->key = order->pool;
    pool->kind = order->kind;
    pool->confined = order->kind == POOL_SLOTS && !order->for_mounts;
    pool->fork_only = order->fork_only;
    memcpy(pool->name, order->name, sizeof pool->name - 1);
    pool->plan_fd = fds[0];
    if (fd_count == 2)
        close(fds[1]); /* the mapping stays */
    pool->zygote.watch.fd = pool->zygote.noise = -1;
    for (unsigned i = 0; i < WAITERS_MAX; i++)
        pool->waiters[i].socket = -1;
    pool->target = TARGET_FIRST;
    pool->used_us = clock_us();
    pool->shrink_us = pool->used_us + SHRINK_US;
    pool->next = warden->pools;
    warden->pools = pool;
    warden->pool_bytes_max = order->memory_bytes ? order->memory_bytes : BYTES_DEFAULT;
}

static void answer_warm(const struct pool *pool, struct pool_waiter *waiter, unsigned ready)
{
    struct event_warm event = {.type = EVENT_WARM, .ready = ready};
    snprintf(event.text, sizeof event.text, "%s", pool->text);
    fd_send(waiter->socket, &event, sizeof event, NULL, 0);
    cleanup_close(&waiter->socket);
    waiter->socket = -1;
}

void pool_warm(struct warden *warden, const struct order *order, int socket)
{
    struct pool *pool = find(warden, order->pool);
    struct pool_waiter *waiter = pool ? pool->waiters : NULL;
    while (waiter && waiter < pool->waiters + WAITERS_MAX && waiter->socket >= 0)
        waiter++;
    if (!waiter || waiter == pool->waiters + WAITERS_MAX) {
        close(socket);
        return;
    }
    *waiter = (struct pool_waiter){socket, at_most(order->count, ceilings[pool->kind])};
    if (pool->floor < waiter->count)
        pool->floor = waiter->count;
    pool->used_us = clock_us();
}

/* From the kernel's account of a process that runs no user code. */
static void add_memory(pid_t pid, uint64_t *unique, uint64_t *shared)
{
    char path[48], text[2048];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (pid <= 0 || fd_read_text_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return;
    static const char *const keys[] = {"\nRss:", "\nPrivate_Clean:", "\nPrivate_Dirty:"};
    uint64_t bytes[ARRAY_LEN(keys)] = {0};
    for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
        const char *at = strstr(text, keys[i]);
        bytes[i] = at ? strtoull(at + strlen(keys[i]), NULL, 10) * 1024 : 0;
    }
    *unique += bytes[1] + bytes[2];
    *shared += bytes[0] - bytes[1] - bytes[2];
}

void pool_list(struct warden *warden, int socket)
{
    count(warden);
    for (struct pool *pool = warden->pools; pool; pool = pool->next) {
        struct event_pool event = {.type = EVENT_POOL,
                                   .kind = pool->kind,
                                   .key = pool->key,
                                   .ready = pool->counts.ready + pool->counts.offered,
                                   .filling = pool->counts.filling,
                                   .target = wanted(warden, pool),
                                   .served = pool->served,
                                   .missed = pool->missed,
                                   .failed = pool->failed,
                                   .zygote = pool->zygote.state == ZYGOTE_SERVING    ? 1
                                             : pool->zygote.state == ZYGOTE_GIVEN_UP ? 2
                                                                                     : 0,
                                   .zygotes_started = pool->zygote.started};
        memcpy(event.name, pool->name, sizeof event.name);
        memcpy(event.text, pool->text, sizeof event.text);
        for (struct cell *cell = warden->cells; cell; cell = cell->next)
            if (cell->pool == pool && !cell->ordered && is_ready(cell))
                add_memory(cell->program_pid, &event.cells_unique_bytes, &event.cells_shared_bytes);
        add_memory(pool->zygote.pid, &event.zygote_unique_bytes, &event.zygote_shared_bytes);
        fd_send(socket, &event, sizeof event, NULL, 0);
    }
    close(socket);
}

static void drop(struct warden *warden, struct cell *cell)
{
    offer_settle(warden, cell);
    if (!cell->ordered)
        cell_kill(warden, cell, ENDING_CANCELLED);
}

/* What waited too long goes: its interpreter may have changed on disk, and its layout should not be learnt. */
static void rotate(struct warden *warden, struct pool *pool, uint64_t now_us)
{
    for (struct cell *cell = warden->cells; cell; cell = cell->next)
        if (cell->pool == pool && !cell->ordered && is_ready(cell) && now_us - cell->made_us > CELL_AGE_US)
            drop(warden, cell);
}

static void shrink(struct warden *warden, struct pool *pool, uint64_t now_us)
{
    if (now_us < pool->shrink_us)
        return;
    pool->shrink_us = now_us + SHRINK_US;
    rotate(warden, pool, now_us);
    if (now_us - pool->used_us < IDLE_US)
        return;
    pool->target /= 2;
    pool->floor = 0;
    for (count(warden); pool->counts.ready > pool->target; count(warden))
        drop(warden, pool->counts.oldest_ready);
    for (struct cell *cell = warden->cells; cell && !pool->target; cell = cell->next)
        if (cell->pool == pool && cell->offered)
            drop(warden, cell);
    if (!pool->target && !pool->counts.filling)
        zygote_stop(warden, pool);
}

bool pool_wants_descriptors(const struct warden *warden)
{
    uint64_t cells = 0;
    for (const struct cell *cell = warden->cells; cell; cell = cell->next)
        cells++;
    return cells * CELL_DESCRIPTORS > warden->descriptors_max / 2;
}

bool pool_is_crowded(const struct warden *warden)
{
    long runs = 0;
    for (const struct cell *cell = warden->cells; cell; cell = cell->next)
        runs += cell->ordered && cell->phase != PHASE_ENDED;
    return runs > warden->processors;
}

/* So long after the last end of a run nobody is likely to need the warden. */
static uint64_t quiet_at(const struct warden *warden, uint64_t after_us)
{
    uint64_t quiet = warden->last_end_us + after_us;
    for (const struct cell *cell = warden->cells; cell; cell = cell->next) {
        bool runs = cell->phase == PHASE_RUNNING, starts = cell->phase == PHASE_STARTING;
        uint64_t young_until = (runs ? cell->started_us : cell->accepted_us) + YOUNG_US;
        if ((runs || starts) && young_until > quiet)
            quiet = young_until;
    }
    return quiet;
}

uint64_t pool_burst_ends(const struct warden *warden)
{
    return quiet_at(warden, QUIET_US);
}

/* When the next cell may be made; UINT64_MAX when none is wanted. */
static uint64_t fill_at(const struct warden *warden, const struct pool *pool)
{
    const struct pool_counts *counts = &pool->counts;
    if (counts->ready + counts->filling + counts->offered >= wanted(warden, pool) || counts->filling >= FILLING_MAX ||
        warden->leaving)
        return UINT64_MAX;
    if (pool_is_short(warden, pool))
        return pool->retry_us;
    uint64_t quiet = quiet_at(warden, QUIET_US);
    return quiet > pool->retry_us ? quiet : pool->retry_us;
}

/* When a ready cell may be offered to the library; UINT64_MAX when none is to be. Only a pool in use offers any. */
static uint64_t offer_at(const struct warden *warden, const struct pool *pool)
{
    unsigned offered = 0;
    for (const struct pool *other = warden->pools; other; other = other->next)
        offered += other->counts.offered;
    /* The others are for orders, which can be of any kind. */
    bool enough = pool->counts.offered && pool->counts.ready < 2;
    if (pool->kind == POOL_SLOTS || !pool->counts.oldest_warm || enough || pool->counts.offered >= OFFERS_EACH ||
        offered >= OFFERS_MAX || warden->leaving || warden->bell.fd < 0 || !(pool->served || pool->floor))
        return UINT64_MAX;
    return quiet_at(warden, OFFER_US);
}

void pool_look_for_strangers(struct warden *warden)
{
    if (!warden->strangers)
        warden->strangers = 1;
    warden->strangers_until_us = clock_us() + 2 * SECOND_US;
}

void pool_expect_stranger(struct warden *warden)
{
    warden->strangers++;
    pool_look_for_strangers(warden);
}

void pool_tick(struct warden *warden, uint64_t now_us)
{
    if (warden->strangers &&
        (warden->leaving || (now_us >= warden->strangers_us && now_us >= quiet_at(warden, QUIET_US)))) {
        zygote_reap_strangers(warden);
        warden->strangers_us = now_us + STRANGERS_US;
    }
    for (struct pool *pool = warden->pools; pool; pool = pool->next) {
        if (warden->leaving)
            return;
        shrink(warden, pool, now_us);
        if (pool->kind == POOL_FORKED)
            zygote_tick(warden, pool, now_us);
        /* One a round, so that an order that came meanwhile is not kept waiting. */
        count(warden);
        if (fill_at(warden, pool) <= now_us && has_room(warden, pool))
            make_cell(warden, pool);
        if (offer_at(warden, pool) <= now_us)
            offer_make(warden, pool->counts.oldest_warm);
        unsigned ready = pool->counts.ready + pool->counts.offered;
        bool hopeless = is_closed(pool) || pool->failed > 3 * (pool->served + 1) ||
                        (!pool->counts.filling && !has_room(warden, pool));
        for (struct pool_waiter *waiter = pool->waiters; waiter < pool->waiters + WAITERS_MAX; waiter++)
            if (waiter->socket >= 0 && (ready >= at_most(waiter->count, ceiling(warden, pool)) || hopeless))
                answer_warm(pool, waiter, ready);
    }
    count(warden);
}

uint64_t pool_next_tick(const struct warden *warden)
{
    uint64_t next = UINT64_MAX;
    /* An init cannot leave before they are reaped. One that does not come soon is left to the next event. */
    if (warden->strangers && warden->strangers_us < warden->strangers_until_us)
        next = warden->leaving ? clock_us() + STRANGERS_US / 20 : warden->strangers_us;
    for (const struct pool *pool = warden->pools; pool; pool = pool->next) {
        uint64_t fill = has_room(warden, pool) ? fill_at(warden, pool) : UINT64_MAX, offer = offer_at(warden, pool);
        if (fill < next)
            next = fill;
        if (offer < next)
            next = offer;
        bool empty = !pool->target && !pool->floor && pool->zygote.state != ZYGOTE_SERVING;
        if (!empty && pool->shrink_us < next)
            next = pool->shrink_us;
        bool starts = pool->zygote.state == ZYGOTE_STARTING || pool->zygote.state == ZYGOTE_PROVING;
        if (starts && pool->zygote.patience_us < next)
            next = pool->zygote.patience_us;
        if (pool->kind == POOL_FORKED && pool->zygote.state == ZYGOTE_NONE && (pool->target || pool->floor) &&
            pool->retry_us < next)
            next = pool->retry_us;
    }
    return next;
}

void pool_close_all(struct warden *warden)
{
    for (struct pool *pool = warden->pools; pool; pool = pool->next) {
        pool->target = pool->floor = 0;
        for (unsigned i = 0; i < WAITERS_MAX; i++) {
            cleanup_close(&pool->waiters[i].socket);
            pool->waiters[i].socket = -1;
        }
        zygote_stop(warden, pool);
    }
}
