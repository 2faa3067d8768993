/* Owns the choice of waiting cells for a run. A pool is known by what its interpreter was started with: language,
 * modules, and the limits that its command line depends on. What a request brings of its own comes with the hand-over.
 */
#include "engine/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "warden/protocol.h"

#define POOLS_MAX   64
#define ZYGOTE_FILE "cordon_zygote.so"

/* A pool's number is its place in the list of those known. */
struct known_pool {
    struct known_pool *next;
    uint64_t key;
    const struct manifest *manifest;
    const struct manifest_tier *tier; /* NULL: slots */
    int64_t memory, cpus;             /* what a started interpreter was told; 0: nothing */
    bool value;
    bool for_mounts; /* slots that can still be given mounts */
    uint32_t optional;
};

static bool is_same(const struct known_pool *a, const struct known_pool *b)
{
    return a->manifest == b->manifest && a->tier == b->tier && a->memory == b->memory && a->cpus == b->cpus &&
           a->value == b->value && a->for_mounts == b->for_mounts && a->optional == b->optional;
}

static int error_gone(cordon_error *err)
{
    error_set(err, CORDON_EGONE, "warden", "the warden has ended");
    return error_hint(err, "it may have had too few open files to start with (ulimit -n)");
}

static int send_order(struct cordon_engine *engine, struct order *order, const int *fds, size_t count,
                      cordon_error *err)
{
    order->size = sizeof *order;
    if (fd_send(engine->socket, order, sizeof *order, fds, count) == 0)
        return 0;
    if (errno != EPIPE && errno != ECONNRESET)
        return error_sys(err, errno, "warden", "cannot send an order to the warden");
    return error_gone(err);
}

/* A pool serves everybody, so what the request that came first was limited to is not its measure: the default profile
 * is, but for what the interpreter's command line tells. */
static int pool_limits(const struct known_pool *pool, struct limits *limits, cordon_error *err)
{
    *limits = (struct limits){0};
    if (pool->memory)
        limits->value[LIMIT_MEMORY_BYTES] = pool->memory;
    if (pool->cpus)
        limits->value[LIMIT_CPUS] = pool->cpus;
    return limits_complete(limits, NULL, err);
}

/* A slot runs nothing yet: the plan tells only its limits and its files. */
static int write_slot_plan(const struct prepared_step *step, const struct limits *limits, int *fd, cordon_error *err)
{
    char *nothing[] = {(char *)"slot", NULL};
    struct plan_source plan = {.limits = limits,
                               .optional = step->plan.optional,
                               .argv = nothing,
                               .candidates = nothing,
                               .etc = step->plan.etc};
    return plan_write(&plan, fd, err);
}

static int write_waiting_plan(const struct known_pool *pool, const struct prepared_step *step,
                              const struct limits *limits, const struct command *command, int *fd, cordon_error *err)
{
    struct plan_source plan = {.limits = limits,
                               .optional = step->plan.optional,
                               .argv = command->argv,
                               .envp = command->envp,
                               .candidates = command->candidates,
                               .etc = step->plan.etc,
                               .value_pipe = pool->value};
    /* What a new zygote's first child is given to run. */
    const struct manifest_warm *warm = pool->manifest->warm;
    char *check[] = {(char *)"code", (char *)pool->manifest->file, (char *)"0", (char *)"0", NULL};
    struct plan_file file = {.path = pool->manifest->file, .content = warm->check_text, .mode = 0644};
    if (warm->check_text) {
        file.length = strlen(warm->check_text);
        plan.handover = check;
        plan.files = &file;
        plan.file_count = 1;
    }
    return plan_write(&plan, fd, err);
}

/* The library that forks it comes along as a file. */
static int write_zygote_plan(const struct cordon_engine *engine, const struct known_pool *pool,
                             const struct prepared_step *step, const struct command_input *input, int *fd,
                             cordon_error *err)
{
    const struct limits *limits = input->limits;
    struct stat st;
    struct command command = {0};
    if (fstat(engine->zygote, &st) < 0)
        return error_sys(err, errno, "zygote", "cannot read the library of forked interpreters");
    int code = command_build_zygote(pool->manifest, pool->tier, input, "/work/" ZYGOTE_FILE, &command, err);
    struct plan_file file = {.path = ZYGOTE_FILE, .length = (size_t)st.st_size, .mode = 0755};
    struct plan_source plan = {.limits = limits,
                               .argv = command.argv,
                               .envp = command.envp,
                               .candidates = command.candidates,
                               .etc = step->plan.etc,
                               .files = &file,
                               .file_fds = &engine->zygote,
                               .file_count = 1};
    if (code == 0)
        code = plan_write(&plan, fd, err);
    command_free(&command);
    return code;
}

static int define_pool(struct cordon_engine *engine, const struct known_pool *pool, const struct prepared_step *step,
                       cordon_error *err)
{
    auto_close int plan = -1, zygote = -1;
    struct limits limits;
    const struct command_input input = {.entry = "", .limits = &limits};
    int code = pool_limits(pool, &limits, err);
    if (code < 0)
        return code;
    struct order order = {.type = ORDER_POOL,
                          .pool = pool->key,
                          .kind = POOL_SLOTS,
                          .for_mounts = pool->for_mounts,
                          .fork_only = pool->tier && !pool->manifest->warm->argv_count,
                          .memory_bytes = engine->warm_bytes};
    snprintf(order.name, sizeof order.name, "%s%s%s", pool->manifest->id, pool->tier ? "/" : "",
             pool->tier ? pool->tier->name : "");
    if (!pool->tier) {
        code = write_slot_plan(step, &limits, &plan, err);
        return code < 0 ? code : send_order(engine, &order, &plan, 1, err);
    }
    char *nothing[] = {(char *)"none", NULL};
    struct command command = {.argv = nothing, .candidates = nothing};
    code = pool->manifest->warm->argv_count ? command_build_warm(pool->manifest, pool->tier, &input, &command, err) : 0;
    if (code == 0)
        code = write_waiting_plan(pool, step, &limits, &command, &plan, err);
    order.kind = pool->manifest->warm->zygote_count && engine->zygote >= 0 ? POOL_FORKED : POOL_STARTED;
    if (code == 0 && order.kind == POOL_FORKED)
        code = write_zygote_plan(engine, pool, step, &input, &zygote, err);
    if (command.argv != nothing)
        command_free(&command);
    if (code < 0)
        return code;
    const int fds[] = {plan, zygote};
    return send_order(engine, &order, fds, order.kind == POOL_FORKED ? 2 : 1, err);
}

/* The key of the pool, which is made known if it is not. */
static int pool_key(struct cordon_engine *engine, const struct known_pool *wanted, const struct prepared *prepared,
                    struct prepared_step *step, uint64_t *key, cordon_error *err)
{
    int code = 0;
    pthread_mutex_lock(&engine->pools_lock);
    struct known_pool *pool = engine->pools;
    while (pool && !is_same(pool, wanted))
        pool = pool->next;
    if (pool)
        *key = pool->key;
    else if (engine->pools && engine->pools->key >= POOLS_MAX)
        *key = 0; /* whoever asks for ever new limits is served without */
    else if (!(pool = malloc(sizeof *pool)))
        code = error_nomem(err);
    else {
        *pool = *wanted;
        *key = pool->key = engine->pools ? engine->pools->key + 1 : 1;
        pool->next = engine->pools;
        code = prepare_check(prepared, step, err);
        if (code == 0)
            code = define_pool(engine, pool, step, err);
        if (code == 0)
            engine->pools = pool;
        else
            free(pool);
    }
    pthread_mutex_unlock(&engine->pools_lock);
    return code;
}

static bool needs_own_start(const struct manifest_warm *warm, const cordon_request *request)
{
    for (size_t i = 0; i < request->env_count; i++)
        for (unsigned n = 0; n < warm->cold_env_count; n++)
            if (fnmatch(warm->cold_env[n], request->env[i].name, 0) == 0)
                return true;
    return request->cold || request->mount_count;
}

/* A slot's root is there already: a mount can only be placed where the program may write. */
static bool mounts_fit_slot(const struct prepared_step *step)
{
    for (size_t i = 0; i < step->plan.mount_count; i++) {
        const char *destination = step->plan.mounts[i].destination;
        if (strncmp(destination, "/work/", 6) != 0 && strncmp(destination, "/tmp/", 5) != 0)
            return false;
    }
    return true;
}

/* What the bootstrap reads before the files: what kind of program, where it starts, its arguments and variables. */
static int list_handover(const struct prepared *prepared, struct prepared_step *step)
{
    const cordon_request *request = prepared->request;
    size_t count = 0, most = 4 + request->args.count + request->env_count;
    char **items = calloc(most + 1, sizeof *items);
    if (!items)
        return -1;
    step->handover = items;
    items[count++] = strdup(request->has_code ? "code" : "files");
    items[count++] = command_file(prepared->entry);
    bool failed = asprintf(&items[count++], "%zu", request->args.count) < 0;
    for (size_t i = 0; i < request->args.count; i++)
        items[count++] = strdup(request->args.items[i]);
    failed |= asprintf(&items[count++], "%zu", request->env_count) < 0;
    for (size_t i = 0; i < request->env_count; i++)
        failed |= asprintf(&items[count++], "%s=%s", request->env[i].name, request->env[i].value) < 0;
    for (size_t i = 0; i < count; i++)
        failed |= !items[i];
    return failed ? -1 : 0;
}

/* `tier`: NULL, or the one to use whatever the program's text. */
static int choose(struct cordon_engine *engine, const struct prepared *prepared, bool compile,
                  const struct manifest_tier *tier, struct prepared_step *step, cordon_error *err)
{
    const struct manifest *manifest = prepared->manifest;
    if (!mounts_fit_slot(step) || step->plan.terminals) /* a slot's root is made without terminals */
        return 0;
    struct known_pool wanted = {
        .manifest = manifest, .for_mounts = step->plan.mount_count > 0, .optional = step->plan.optional};
    int code = pool_key(engine, &wanted, prepared, step, &step->plan.slots, err);
    if (code < 0 || compile || manifest->compile || !manifest->warm ||
        needs_own_start(manifest->warm, prepared->request) || !(manifest->warm->argv_count || engine->zygote >= 0))
        return code;
    const char *text;
    code = manifest_bootstrap(manifest, &text, err);
    if (code < 0)
        return code;
    const struct bytes *source = prepared_source(prepared); /* by which its modules are known */
    wanted.tier = tier ? tier : manifest_tier_for(manifest, source->data ? source->data : "", source->length);
    if (!wanted.tier)
        return 0;
    const int64_t *limit = step->plan.limits->value;
    wanted.memory = command_tells_memory(manifest) ? limit[LIMIT_MEMORY_BYTES] : 0;
    wanted.cpus = command_tells_cpus(manifest) ? limit[LIMIT_CPUS] : 0;
    wanted.value = step->plan.value_pipe;
    code = pool_key(engine, &wanted, prepared, step, &step->plan.pool, err);
    if (code == 0 && list_handover(prepared, step) < 0)
        code = error_nomem(err);
    step->plan.handover = step->handover;
    return code;
}

int warm_choose(struct cordon_engine *engine, const struct prepared *prepared, bool compile, struct prepared_step *step,
                cordon_error *err)
{
    return engine->warm ? choose(engine, prepared, compile, NULL, step, err) : 0;
}

/* Without one nothing is offered. */
static void hang_bell(struct cordon_engine *engine)
{
    struct order order = {.size = sizeof order, .type = ORDER_BELL};
    engine->bell.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (engine->bell.timer >= 0)
        fd_send(engine->socket, &order, sizeof order, &engine->bell.timer, 1);
}

int warm_enable(struct cordon_engine *engine)
{
    pthread_mutex_lock(&engine->pools_lock);
    if (!engine->warm) {
        hang_bell(engine);
        auto_free char *own = places_own_directory();
        engine->zygote = own ? places_zygote(own) : -1;
        engine->warm = true;
    }
    pthread_mutex_unlock(&engine->pools_lock);
    return 0;
}

void warm_free(struct cordon_engine *engine)
{
    while (engine->pools) {
        struct known_pool *pool = engine->pools;
        engine->pools = pool->next;
        free(pool);
    }
    cleanup_close(&engine->zygote);
    pthread_mutex_destroy(&engine->pools_lock);
}

/* A socket whose far end goes with the order. */
static int ask(struct cordon_engine *engine, struct order *order, int *ours, cordon_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, errno, "warden", "cannot make a socket");
    *ours = pair[0];
    auto_close int theirs = pair[1];
    return send_order(engine, order, &theirs, 1, err);
}

static int wait_for_cells(struct cordon_engine *engine, uint64_t key, unsigned count, int timeout_ms, cordon_error *err)
{
    auto_close int answer = -1;
    struct order order = {.type = ORDER_WARM, .pool = key, .count = count};
    int code = ask(engine, &order, &answer, err);
    if (code < 0)
        return code;
    struct pollfd ready = {.fd = answer, .events = POLLIN};
    struct event_warm event;
    size_t none;
    if (poll(&ready, 1, timeout_ms) <= 0)
        return error_set(err, CORDON_ESTATE, "warm", "no %u cells were ready within %d ms", count, timeout_ms);
    if (fd_receive(answer, &event, sizeof event, NULL, 0, &none) != sizeof event) {
        if (!engine_is_alive(engine))
            return error_gone(err);
        error_sys(err, EMFILE, "warden", "the warden could not take the order");
        return error_hint(err, "raise the limit of open files (ulimit -n)");
    }
    if (event.ready < count && *event.text)
        return error_set(err, CORDON_ESTATE, "warm", "only %u cells became ready: %s", event.ready, event.text);
    return (int)event.ready;
}

static int warm_tier(struct cordon_engine *engine, const cordon_request *like, const struct manifest_tier *tier,
                     unsigned count, int timeout_ms, cordon_error *err)
{
    struct prepared prepared;
    struct prepared_step step;
    uint64_t key = 0;
    warm_enable(engine);
    int code = prepare(engine, like, &prepared, err);
    if (code < 0)
        return code;
    code = prepare_step(&prepared, false, NULL, &step, err);
    if (code == 0) {
        code = choose(engine, &prepared, false, tier, &step, err);
        key = step.plan.pool ? step.plan.pool : step.plan.slots;
        prepared_step_free(&step);
    }
    prepared_free(&prepared);
    return code < 0 || !key ? code : wait_for_cells(engine, key, count, timeout_ms, err);
}

int cordon_engine_warm(cordon_engine *engine, const cordon_request *like, unsigned count, int timeout_ms,
                       cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(like, err);
    return warm_tier(engine, like, NULL, count, timeout_ms, err);
}

int cordon_engine_warm_language(cordon_engine *engine, const char *language, unsigned count, int timeout_ms,
                                cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(language, err);
    const struct manifest *manifest = NULL;
    cordon_request *request = cordon_request_new();
    int ready = 0, code = request ? cordon_request_set_language(request, language, err) : error_nomem(err);
    if (code == 0)
        code = cordon_request_set_code(request, "", 0, err);
    if (code == 0)
        code = catalog_find(engine->catalog, language, &manifest, err);
    const struct manifest_warm *warm = manifest && !manifest->compile ? manifest->warm : NULL;
    unsigned tiers = warm ? warm->tiers_count : 1;
    for (unsigned i = 0; code >= 0 && i < tiers; i++) {
        const struct manifest_tier *tier = warm ? &warm->tiers[i] : NULL;
        code = warm_tier(engine, request, tier, count, timeout_ms, err);
        ready += code > 0 ? code : 0;
    }
    cordon_request_free(request);
    return code < 0 ? code : ready;
}

static json_t *pool_json(const struct event_pool *pool)
{
    static const char *const kinds[] = {[POOL_SLOTS] = "slots", [POOL_STARTED] = "started", [POOL_FORKED] = "forked"};
    static const char *const zygotes[] = {"none", "serving", "given up"};
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:{s:s, s:i, s:I, s:I}, s:s*}", "name",
                     pool->name, "kind", kinds[pool->kind], "ready", (int)pool->ready, "filling", (int)pool->filling,
                     "target", (int)pool->target, "served", (json_int_t)pool->served, "missed",
                     (json_int_t)pool->missed, "failed", (json_int_t)pool->failed, "unique_bytes",
                     (json_int_t)pool->cells_unique_bytes, "shared_bytes", (json_int_t)pool->cells_shared_bytes,
                     "zygote", "state", zygotes[pool->zygote], "started", (int)pool->zygotes_started, "unique_bytes",
                     (json_int_t)pool->zygote_unique_bytes, "shared_bytes", (json_int_t)pool->zygote_shared_bytes,
                     "failure", *pool->text ? pool->text : NULL);
}

int cordon_pools(cordon_engine *engine, char **json, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(json, err);
    auto_close int answer = -1;
    struct order order = {.type = ORDER_POOLS};
    int code = ask(engine, &order, &answer, err);
    if (code < 0)
        return code;
    json_t *list = json_array();
    struct event_pool event;
    size_t none;
    while (fd_receive(answer, &event, sizeof event, NULL, 0, &none) == sizeof event)
        json_array_append_new(list, pool_json(&event));
    *json = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return *json ? 0 : error_nomem(err);
}
