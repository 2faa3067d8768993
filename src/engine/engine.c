/* Opening and closing an engine: the warden's process and the language catalogue. */
#include "engine/engine.h"
#include "engine/language_proofs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/control.h"
#include "base/error.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "engine/compile_cache.h"
#include "engine/delegate.h"
#include "engine/offers.h"
#include "engine/warm.h"
#include "warden/protocol.h"

/* A session of its own, so that a terminal's Ctrl-C reaches the caller only; default signals; no environment; no
 * descriptor but its socket (those of the host that are not close-on-exec are closed by the file actions). */
static int spawn_warden(const char *path, int socket, bool wait_for_group, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, socket, WARDEN_SOCKET);
    if (!MUTANT(CLOSE_FDS))
        posix_spawn_file_actions_addclosefrom_np(&actions, WARDEN_SOCKET + 1);
    char *argv[] = {(char *)"cordon-warden", wait_for_group ? (char *)WARDEN_LATE_GROUP : NULL, NULL};
    char *environment[] = {NULL};
    code = posix_spawn(pid, path, &actions, &attributes, argv, MUTANT(ENVIRONMENT) ? environ : environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* Without the rights of the superuser the warden must be executed, inside a user namespace of its own. */
static bool may_fork_warden(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    return geteuid() == 0 && syscall(SYS_capget, &header, data) == 0 && data[0].effective & (1U << CAP_SYS_ADMIN);
}

static int fork_warden(int (*warden_main)(int), int socket, pid_t *pid)
{
    *pid = fork();
    if (*pid == 0)
        _exit(warden_main(socket));
    return *pid < 0 ? errno : 0;
}

static int start_warden(struct cordon_engine *engine, const cordon_engine_options *options, const char *path,
                        cordon_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, errno, "warden", "cannot make a socket");
    auto_close int ours = pair[0], theirs = pair[1];
    /* dup2 onto itself would leave close-on-exec set. */
    auto_close int high = fcntl(theirs, F_DUPFD_CLOEXEC, WARDEN_SOCKET + 1);
    if (high < 0)
        return error_sys(err, errno, "warden", "cannot make a socket");
    bool delegate = delegate_wanted();
    int code = options->warden_main && may_fork_warden() ? fork_warden(options->warden_main, high, &engine->warden)
                                                         : spawn_warden(path, high, delegate, &engine->warden);
    if (code)
        return error_sys(err, code, "warden", "cannot start %s", path);
    engine->warden_pidfd = (int)syscall(SYS_pidfd_open, engine->warden, 0);
    engine->socket = take_fd(&ours);
    if (delegate)
        delegate_scope(engine->warden);
    return 0;
}

static int read_optional(struct cordon_engine *engine, const char *names, cordon_error *err)
{
    auto_free char *list = strdup(names ? names : "");
    char *rest = NULL;
    if (!list)
        return error_nomem(err);
    for (char *name = strtok_r(list, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        enum control control = control_from_name(name);
        if (control == CONTROL_NONE) {
            error_set(err, CORDON_EINVAL, "engine", "optional: there is no control '%.40s'", name);
            return error_hint(err, "`cordon doctor` lists the controls");
        }
        engine->optional |= CONTROL_BIT(control);
    }
    return 0;
}

int cordon_engine_open(const cordon_engine_options *options, cordon_engine **out, cordon_error *err)
{
    if (!out)
        return error_null(err, "engine");
    const cordon_engine_options defaults = CORDON_ENGINE_OPTIONS_INIT;
    if (!options)
        options = &defaults;
    if (options->struct_size < sizeof defaults)
        return error_set(err, CORDON_EINVAL, "engine", "struct_size of the options is %zu, expected %zu",
                         options->struct_size, sizeof defaults);
    struct cordon_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return error_nomem(err);
    engine->references = 1;
    engine->socket = engine->warden_pidfd = engine->bell.timer = engine->zygote = -1;
    engine->warm_bytes = options->warm_bytes;
    pthread_mutex_init(&engine->versions_lock, NULL);
    pthread_mutex_init(&engine->proofs_lock, NULL);
    pthread_mutex_init(&engine->kept_proofs_lock, NULL);
    pthread_mutex_init(&engine->learning_lock, NULL);
    pthread_mutex_init(&engine->pools_lock, NULL);
    pthread_mutex_init(&engine->bell.lock, NULL);
    auto_free char *warden_path = NULL, *own = places_own_directory();
    char **directories = NULL;
    int code = own ? read_optional(engine, options->optional, err)
                   : error_sys(err, errno, "engine", "cannot read /proc/self/maps");
    if (code == 0)
        code = places_warden(own, options->warden_path, &warden_path, err);
    if (code == 0)
        code = places_languages(own, options->languages_dir, &directories, err);
    if (code == 0)
        code = catalog_open((const char *const *)directories, &engine->catalog, err);
    places_free(directories);
    if (code == 0 && options->cache_bytes != SIZE_MAX) {
        engine->compiled = compile_cache_new(options->cache_dir, options->cache_bytes, options->tenant);
        code = engine->compiled ? 0 : error_nomem(err);
    }
    if (code == 0)
        code = start_warden(engine, options, warden_path, err);
    if (code < 0) {
        cordon_engine_close(engine);
        return code;
    }
    if (options->warm)
        warm_enable(engine);
    *out = engine;
    return 0;
}

int engine_read_ahead(struct cordon_engine *engine, cordon_error *err)
{
    const struct manifest *const *manifests;
    size_t count = 0;
    int code = catalog_all(engine->catalog, &manifests, &count, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = manifest_read_ahead(manifests[i], err);
    return code;
}

bool engine_is_alive(const struct cordon_engine *engine)
{
    struct pollfd gone = {.fd = engine->warden_pidfd, .events = POLLIN};
    return engine->socket >= 0 && engine->warden_pidfd >= 0 && poll(&gone, 1, 0) == 0;
}

struct cordon_engine *engine_ref(struct cordon_engine *engine)
{
    atomic_fetch_add(&engine->references, 1);
    return engine;
}

void engine_unref(struct cordon_engine *engine)
{
    if (atomic_fetch_sub(&engine->references, 1) > 1)
        return;
    catalog_close(engine->catalog);
    versions_free(engine);
    proofs_forget(engine);
    compile_cache_free(engine->compiled);
    warm_free(engine);
    cleanup_close(&engine->bell.timer); /* not before the last run, which may still ring it */
    pthread_mutex_destroy(&engine->bell.lock);
    pthread_mutex_destroy(&engine->versions_lock);
    pthread_mutex_destroy(&engine->proofs_lock);
    pthread_mutex_destroy(&engine->kept_proofs_lock);
    pthread_mutex_destroy(&engine->learning_lock);
    free(engine);
}

/* The warden leaves by itself when its socket closes; it is killed if it does not. */
static void stop_warden(struct cordon_engine *engine)
{
    cleanup_close(&engine->socket);
    engine->socket = -1;
    offers_free(engine);
    if (engine->warden <= 0)
        return;
    struct pollfd gone = {.fd = engine->warden_pidfd, .events = POLLIN};
    if (engine->warden_pidfd >= 0 && poll(&gone, 1, 5000) == 0)
        syscall(SYS_pidfd_send_signal, engine->warden_pidfd, SIGKILL, NULL, 0);
    /* A host that reaps every child may have been first. */
    siginfo_t info;
    while (waitid(P_PID, (id_t)engine->warden, &info, WEXITED) < 0 && errno == EINTR)
        ;
    cleanup_close(&engine->warden_pidfd);
}

void cordon_engine_close(cordon_engine *engine)
{
    if (!engine)
        return;
    stop_warden(engine);
    engine_unref(engine);
}

void cordon_free(void *memory)
{
    free(memory);
}

const char *cordon_version(void)
{
    return CORDON_VERSION;
}
