/* What Node calls the zygote library by: an addon of three functions. Two learn where V8 keeps the generator
 * that seeds Math.random(), and Node its exit code; fork() returns in every copy of the process, with new random
 * states. The few functions of Node's addon interface are declared here and looked up when the addon is loaded, so that
 * the same library needs no Node to be built, and can be loaded into other interpreters. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "zygote/keep.h"
#include "zygote/node_exit.h"
#include "zygote/serve.h"

typedef struct napi_env_opaque *napi_env;
typedef struct napi_value_opaque *napi_value;
typedef struct napi_info_opaque *napi_info;
struct napi_scope_opaque;
typedef napi_value (*napi_callback)(napi_env, napi_info);

/* Of libuv, which is part of Node. */
struct uv_loop_s;
typedef void (*uv_prepare_cb)(void *handle);
#define UV_PREPARE 9

/* One function of Node's: its name, and its parameters after the environment. Each returns 0 when it worked. */
#define NODE_FUNCTIONS(X)                                                                                              \
    X(napi_create_function, const char *, size_t, napi_callback, void *, napi_value *)                                 \
    X(napi_set_named_property, napi_value, const char *, napi_value)                                                   \
    X(napi_get_cb_info, napi_info, size_t *, napi_value *, napi_value *, void **)                                      \
    X(napi_get_value_int32, napi_value, int32_t *)                                                                     \
    X(napi_create_int32, int32_t, napi_value *)                                                                        \
    X(napi_get_global, napi_value *)                                                                                   \
    X(napi_call_function, napi_value, napi_value, size_t, const napi_value *, napi_value *)                            \
    X(napi_add_env_cleanup_hook, void (*)(void *), void *)                                                             \
    X(napi_get_uv_event_loop, struct uv_loop_s **)                                                                     \
    X(napi_open_handle_scope, struct napi_scope_opaque **)                                                             \
    X(napi_close_handle_scope, struct napi_scope_opaque *)                                                             \
    X(napi_has_named_property, napi_value, const char *, bool *)                                                       \
    X(napi_throw_error, const char *, const char *)

static struct {
#define DECLARE(name, ...) int (*name)(napi_env, __VA_ARGS__);
    NODE_FUNCTIONS(DECLARE)
#undef DECLARE
} node;

/* The two words of V8's xorshift128+ generator from which contexts are seeded. */
static uint64_t (*generator)[2];

/* Node's record of its exit; NULL where it has none. */
static struct {
    int32_t began, code, set;
} * exit_state;

static void generator_step(uint64_t state[2])
{
    uint64_t a = state[0], b = state[1];
    a ^= a << 23;
    a ^= a >> 17;
    a ^= b;
    a ^= b >> 26;
    state[0] = b;
    state[1] = a;
}

/* Whether `now` is what a generator at `before` becomes within a few steps. By chance that happens once in 2^121. */
static bool is_later(const void *before, const void *now)
{
    uint64_t state[2];
    memcpy(state, before, sizeof state);
    if (state[0] == 0 || state[1] == 0 || memcmp(before, now, sizeof state) == 0)
        return false;
    for (int i = 0; i < 64; i++) {
        generator_step(state);
        if (memcmp(state, now, sizeof state) == 0)
            return true;
    }
    return false;
}

static napi_value fail(napi_env env, const char *text)
{
    node.napi_throw_error(env, NULL, text);
    return NULL;
}

static bool heap_range(uintptr_t *from, uintptr_t *to)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, maps))
        found = strstr(line, "[heap]") && sscanf(line, "%lx-%lx", from, to) == 2;
    fclose(maps);
    return found;
}

static napi_value call(napi_env env, napi_value function)
{
    napi_value global, result;
    if (node.napi_get_global(env, &global) || node.napi_call_function(env, global, function, 0, NULL, &result))
        return NULL;
    return result;
}

/* Calls `change` and looks for the one place in the C heap where what was there before and what is there now match.
 * NULL: it threw, or there is not exactly one. */
static void *find_change(napi_env env, napi_value change, bool (*matches)(const void *before, const void *now),
                         size_t size)
{
    uintptr_t from, to;
    if (!heap_range(&from, &to))
        return NULL;
    auto_free char *before = malloc(to - from);
    if (!before)
        return NULL;
    char *heap = (char *)from;
    memcpy(before, heap, to - from);
    if (!call(env, change))
        return NULL;
    void *found = NULL;
    for (size_t at = 0; at + size <= to - from; at += sizeof(uint32_t)) {
        if (!matches(before + at, heap + at))
            continue;
        if (found)
            return NULL;
        found = heap + at;
    }
    return found;
}

static napi_value find(napi_env env, napi_info info, bool (*matches)(const void *, const void *), size_t size,
                       void **place)
{
    size_t count = 1;
    napi_value change, found;
    if (node.napi_get_cb_info(env, info, &count, &change, NULL, NULL) || count != 1)
        return NULL;
    *place = find_change(env, change, matches, size);
    return node.napi_create_int32(env, *place != NULL, &found) ? NULL : found;
}

/* findRandom(draw): draw() makes V8 seed a context. */
static napi_value find_random(napi_env env, napi_info info)
{
    return find(env, info, is_later, sizeof *generator, (void **)&generator);
}

/* Node 20 keeps three numbers about its exit: whether it began, the exit code, and whether the code was set. */
static bool is_exit_code(const void *before, const void *now)
{
    static const int32_t unset[3] = {0, 0, 0}, set[3] = {0, 0x5ca1ab1e, 1};
    return memcmp(now, set, sizeof set) == 0 && memcmp(before, unset, sizeof unset) == 0;
}

/* findExitCode(set): set() makes 0x5ca1ab1e the exit code. */
static napi_value find_exit_code(napi_env env, napi_info info)
{
    return find(env, info, is_exit_code, sizeof *exit_state, (void **)&exit_state);
}

/* New states for both generators a program can draw from. OpenSSL would notice a copy by its process id, but in their
 * own pid namespaces all copies have the same. Math.random() itself must not have been used in this context: then its
 * first use takes a seed from V8's generator, and that this happened is checked. */
static bool reseed(napi_env env, napi_value math_random)
{
    int (*openssl_reseed)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "RAND_poll");
    if (!openssl_reseed || openssl_reseed() != 1)
        return false;
    uint64_t seed[2];
    if (getrandom(seed, sizeof seed, 0) != sizeof seed)
        return false;
    memcpy(generator, seed, sizeof seed);
    return call(env, math_random) && is_later(seed, generator);
}

/* Runs first of all exit handlers: what is left would only free memory that the kernel is about to free, and touch all
 * of it for that. */
static void leave(int status, void *unused)
{
    (void)unused;
    fflush(NULL);
    _exit(status);
}

static void leave_with(int code)
{
    leave(code, NULL);
}

/* The same where the program came to its natural end, all who listen for that were told, and Node begins to take V8
 * apart. */
static void leave_early(void *unused)
{
    if (exit_state && exit_state->began)
        leave(exit_state->set ? exit_state->code : 0, unused);
}

static napi_env main_env;

/* Where Node takes itself apart nobody may call into the program any more. */
static bool is_over(void)
{
    struct napi_scope_opaque *scope;
    napi_value global;
    bool has;
    if (node.napi_open_handle_scope(main_env, &scope))
        return false;
    bool over = node.napi_get_global(main_env, &global) == 0 &&
                node.napi_has_named_property(main_env, global, "process", &has) != 0;
    node.napi_close_handle_scope(main_env, scope);
    return over;
}

/* A program that began to exit may think better of it: what listens for that may throw. */
static void leave_in_loop(void *handle)
{
    if (exit_state->began && is_over())
        leave_early(handle);
}

/* Node closes its own handles first, and runs the loop for that: one that is called in each round is there in time to
 * spare the rest. Where it cannot be had, the hook of the environment comes later. */
static void watch_loop(napi_env env)
{
    static _Alignas(16) char handle[512];
    size_t (*size)(int) = (size_t(*)(int))dlsym(RTLD_DEFAULT, "uv_handle_size");
    int (*init)(struct uv_loop_s *, void *) =
        (int (*)(struct uv_loop_s *, void *))dlsym(RTLD_DEFAULT, "uv_prepare_init");
    int (*start)(void *, uv_prepare_cb) = (int (*)(void *, uv_prepare_cb))dlsym(RTLD_DEFAULT, "uv_prepare_start");
    void (*unref)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "uv_unref");
    struct uv_loop_s *loop;
    main_env = env;
    if (!exit_state || !size || !init || !start || !unref || size(UV_PREPARE) > sizeof handle ||
        node.napi_get_uv_event_loop(env, &loop))
        return;
    if (init(loop, handle) == 0 && start(handle, leave_in_loop) == 0)
        unref(handle);
}

/* fork(socket, Math.random): gives the process id of each copy, negative where a program waits already. The zygote
 * itself never comes back. */
static napi_value fork_whole(napi_env env, napi_info info)
{
    size_t count = 2;
    napi_value arguments[2], pid;
    int32_t socket;
    if (node.napi_get_cb_info(env, info, &count, arguments, NULL, NULL) || count != 2 ||
        node.napi_get_value_int32(env, arguments[0], &socket))
        return fail(env, "fork(socket, Math.random)");
    if (!generator)
        return fail(env, "the random generator was not found");
    on_exit(leave, NULL);
    node.napi_add_env_cleanup_hook(env, leave_early, NULL);
    if (!node_leaves_at_exit(leave_with))
        watch_loop(env);
    int r = zygote_serve_whole(socket);
    if (r != 0)
        _exit(r == 1 ? 0 : 1);
    if (!reseed(env, arguments[1])) {
        static const char text[] = "zygote: cannot reseed the random generators\n";
        _exit(write(2, text, sizeof text - 1) < 0 ? 2 : 1);
    }
    return node.napi_create_int32(env, zygote_is_awaited ? -getpid() : getpid(), &pid) ? NULL : pid;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
#define LOOK_UP(name, ...) *(void **)&node.name = dlsym(RTLD_DEFAULT, #name);
    NODE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
#define CHECK(name, ...)                                                                                               \
    if (!node.name)                                                                                                    \
        return NULL;
    NODE_FUNCTIONS(CHECK)
#undef CHECK
    const struct {
        const char *name;
        napi_callback function;
    } functions[] = {{"findRandom", find_random}, {"findExitCode", find_exit_code}, {"fork", fork_whole}};
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        napi_value function;
        if (node.napi_create_function(env, functions[i].name, strlen(functions[i].name), functions[i].function, NULL,
                                      &function) ||
            node.napi_set_named_property(env, exports, functions[i].name, function))
            return NULL;
    }
    return exports;
}
