/* Opens what the daemon consists of, gives up its privileges, and runs the loop. SIGTERM and SIGINT end it after a time
 * for what runs; SIGHUP reads the configuration again. */
#include "service/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/execution.h"
#include "api/idempotency.h"
#include "api/readiness.h"
#include "api/recorder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "judge/framework.h"
#include "service/config_settings.h"
#include "service/confine.h"
#include "service/log.h"
#include "service/machine.h"
#include "service/notify.h"
#include "service/work.h"

#define SECOND_US   UINT64_C(1000000)
#define PEM_MAX     (1 << 20)
#define SECRETS_MAX (1 << 20)
/* Questions to the store at a time. With fewer, one large result keeps others waiting; more compete for one file. */
#define DISK_THREADS 4
#define KEYS_US      UINT64_C(500000)

struct daemon {
    struct api api;
    serve_settle *settle;
    const void *settle_context;
    struct loop_watch signals;
    struct loop_timer deadline; /* of the draining */
    bool late;                  /* that is over: whoever does not read his answer has had his time */
    struct work_item prebuilding, version_learning, key_reading;
    struct loop_timer key_timer;
    atomic_bool leaving;
    char *tls_cert, *tls_key, *secrets;
    struct redact_secret *secret_list;
    int exit_code;
};

bool engine_alive(const struct api *api)
{
    return engine_is_alive(api->engine);
}

/* Secrets that are everybody's: one a line. */
static int read_secrets(struct daemon *daemon, size_t *count, cordon_error *err)
{
    const struct config *config = daemon->api.config;
    *count = 0;
    for (char **file = config->secret_files; file && *file; file++) {
        auto_free char *text = NULL;
        size_t length;
        int code = file_read(*file, SECRETS_MAX, "config", &text, &length, err);
        if (code < 0)
            return code;
        for (char *save, *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
            line += strspn(line, " \t");
            size_t width = strlen(line);
            while (width && strchr(" \t", line[width - 1]))
                width--;
            line[width] = '\0';
            if (!width)
                continue;
            struct redact_secret *more = reallocarray(daemon->secret_list, *count + 1, sizeof *more);
            char *copy = strdup(line);
            if (more)
                daemon->secret_list = more;
            if (!more || !copy) {
                free(copy);
                return error_nomem(err);
            }
            more[(*count)++] = (struct redact_secret){copy, strlen(copy)};
        }
    }
    return 0;
}

static void free_secrets(struct daemon *daemon, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        explicit_bzero((char *)daemon->secret_list[i].value, daemon->secret_list[i].length);
        free((char *)daemon->secret_list[i].value);
    }
    free(daemon->secret_list);
    daemon->secret_list = NULL;
}

static int open_rules(struct daemon *daemon, struct redact_rules **rules, cordon_error *err)
{
    size_t count;
    int code = read_secrets(daemon, &count, err);
    if (code == 0) {
        struct redact_options options = {.files = (const char *const *)daemon->api.config->redaction_files,
                                         .secrets = daemon->secret_list,
                                         .secret_count = count};
        code = redact_rules_open(&options, rules, err);
    }
    free_secrets(daemon, count);
    return code;
}

static enum sanitize sanitize_of(const struct config *config)
{
    if (!config->sanitize || !strcmp(config->sanitize, "secrets"))
        return SANITIZE_SECRETS;
    return !strcmp(config->sanitize, "all") ? SANITIZE_ALL : SANITIZE_NONE;
}

/* Opening */

static int open_engine(struct api *api, cordon_error *err)
{
    const struct config *config = api->config;
    auto_free char *cache = NULL;
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    if (asprintf(&cache, "%s/compiled", config->data_dir) < 0)
        return error_nomem(err);
    mkdir(cache, 0700);
    options.warm = 1;
    options.warm_bytes = config->warm_bytes;
    options.cache_dir = cache;
    options.languages_dir = config->languages_dir;
    options.warden_path = config->warden_path;
    int code = cordon_engine_open(&options, &api->engine, err);
    /* Its files may lie where the user that this process becomes cannot read. */
    if (code == 0)
        code = engine_read_ahead(api->engine, err);
    return code == 0 ? frameworks_read_ahead(api->engine, err) : code;
}

static int open_admission(struct api *api, cordon_error *err)
{
    const struct config *config = api->config;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned places = config->concurrency ? config->concurrency : (unsigned)(processors > 0 ? 2 * processors : 4);
    struct admission_options options = {.places = places,
                                        .queue = config->queue,
                                        .wait_us = config->queue_wait_ms * 1000,
                                        .memory_bytes =
                                            config->memory_bytes ? config->memory_bytes : machine_memory() / 4 * 3,
                                        .processes = config->processes};
    api->admission = admission_new(api->loop, &options);
    int code = api->admission ? work_open(api->loop, places + 4, &api->work, err) : error_nomem(err);
    if (code == 0)
        code = work_open(api->loop, DISK_THREADS, &api->disk, err);
    api->recorder = recorder_new(api);
    return code == 0 && !api->recorder ? error_nomem(err) : code;
}

/* The address may be one that was handed over, of which the settings know nothing. */
static int check_reach(const struct api *api, cordon_error *err)
{
    const struct config *config = api->config;
    const char *address = http_server_address(api->server);
    bool local = http_server_is_local(api->server);
    if (!local && !config->tls_cert && !config->behind_proxy) {
        error_set(err, CORDON_EINVAL, "listen", "%s can be reached from elsewhere, and there is no TLS", address);
        return error_hint(err, "set tls_cert and tls_key, or behind_proxy when a proxy does it");
    }
    if ((!local || config->behind_proxy) && !keys_exist(api->store)) {
        error_set(err, CORDON_EINVAL, "listen", "%s can be reached from elsewhere%s, and there are no keys", address,
                  local ? " through a proxy" : "");
        return error_hint(err, "make one with `cordon key new`, or listen at 127.0.0.1");
    }
    return 0;
}

static int open_server(struct daemon *daemon, cordon_error *err)
{
    struct api *api = &daemon->api;
    const struct config *config = api->config;
    size_t length;
    int code = 0;
    if (config->tls_cert)
        code = file_read(config->tls_cert, PEM_MAX, "tls", &daemon->tls_cert, &length, err);
    if (code == 0 && config->tls_key)
        code = file_read(config->tls_key, PEM_MAX, "tls", &daemon->tls_key, &length, err);
    struct http_options options = {.listen = config->listen,
                                   .listen_fd = notify_socket(),
                                   .tls_cert = daemon->tls_cert,
                                   .tls_key = daemon->tls_key,
                                   .body_max = config->body_bytes,
                                   .connections = config->connections,
                                   .request_us = config->request_ms * 1000,
                                   .accept = api_accept,
                                   .room = api_room,
                                   .refuse = api_refuse,
                                   .handle = api_handle,
                                   .done = api_done,
                                   .context = api};
    return code == 0 ? http_server_open(api->loop, &options, &api->server, err) : code;
}

/* It stays the run of the key that asked for it. */
static void settle_run(struct api *api, const char *id, const cordon_error *why)
{
    auto_free char *known = NULL;
    cordon_error err;
    store_result(api->store, id, NULL, &known, NULL);
    json_t *accepted = known ? json_loads(known, JSON_ALLOW_NUL, NULL) : NULL;
    const char *created_at = json_string_value(json_object_get(accepted, "created_at"));
    json_t *told = result_of_failure(id, created_at ? created_at : "",
                                     json_string_value(json_object_get(accepted, "language")), why);
    struct store_run run = {id, NULL, NULL, told, NULL};
    if (store_finish(api->store, &run, &err) < 0)
        log_error("store", &err);
    json_decref(told);
    json_decref(accepted);
}

/* Runs that a daemon had accepted when it died. */
static void settle_unfinished(struct api *api)
{
    char **ids = NULL;
    cordon_error err, why;
    error_set(&why, CORDON_EGONE, "daemon", "the daemon ended while the run was waiting or under way");
    if (store_unfinished(api->store, &ids, &err) < 0)
        return;
    for (char **id = ids; id && *id; id++) {
        settle_run(api, *id, &why);
        free(*id);
    }
    free(ids);
}

/* Signals */

/* Everything has ended, and everybody who waits has been told. */
static void finish_draining(const struct daemon *daemon)
{
    const struct api *api = &daemon->api;
    if (admission_running(api->admission) == 0 && (daemon->late || http_server_calls(api->server) == 0))
        loop_stop(api->loop);
}

static void give_up(void *context)
{
    struct daemon *daemon = context;
    daemon->late = true;
    finish_draining(daemon);
}

static void cancel_rest(void *context)
{
    struct daemon *daemon = context;
    log_event(LOG_LEVEL_WARN, "drain_deadline",
              json_pack("{s:i}", "cancelled", (int)admission_running(daemon->api.admission)));
    executions_stop(&daemon->api, true);
    daemon->deadline.expired = give_up;
    loop_set_timer(daemon->api.loop, &daemon->deadline, clock_us() + SECOND_US);
}

static void drain(struct daemon *daemon)
{
    struct api *api = &daemon->api;
    if (api->draining) { /* asked twice: at once */
        executions_stop(api, true);
        loop_stop(api->loop);
        return;
    }
    api->draining = true;
    notify_tell("STOPPING=1");
    log_event(LOG_LEVEL_INFO, "draining",
              json_pack("{s:i, s:i}", "running", (int)admission_running(api->admission), "queued",
                        (int)admission_queued(api->admission)));
    admission_stop(api->admission);
    executions_stop(api, false);
    daemon->deadline = (struct loop_timer){.expired = cancel_rest, .context = daemon};
    loop_set_timer(api->loop, &daemon->deadline, clock_us() + api->config->drain_ms * 1000);
    loop_set_timer(api->loop, &api->second, clock_us());
}

/* Takes what can change while the daemon runs; the names of the other settings that have changed. */
static json_t *take_settings(struct config *config, struct config *fresh)
{
    const struct setting *rows;
    size_t count = settings_all(&rows);
    json_t *waiting = json_array();
    for (size_t i = 0; i < count; i++)
        if (setting_reloads(&rows[i]))
            setting_swap(config, fresh, &rows[i]);
        else if (!setting_equal(config, fresh, &rows[i]))
            json_array_append_new(waiting, json_string(rows[i].name));
    return waiting;
}

static void reload(struct daemon *daemon)
{
    struct api *api = &daemon->api;
    struct config fresh = {0}, *config = api->config;
    struct redact_rules *rules = NULL;
    enum log_level level;
    cordon_error err;
    int code = daemon->settle(daemon->settle_context, &fresh, NULL, &err);
    if (code == 0) {
        struct config kept = *config;
        config->redaction_files = fresh.redaction_files;
        config->secret_files = fresh.secret_files;
        code = open_rules(daemon, &rules, &err);
        config->redaction_files = kept.redaction_files;
        config->secret_files = kept.secret_files;
    }
    if (code < 0) {
        log_error("reload_failed", &err);
        config_free(&fresh);
        return;
    }
    /* Redactors under way hold what they need of the old ones. */
    redact_rules_close(api->rules);
    api->rules = rules;
    json_t *waiting = take_settings(config, &fresh);
    config_free(&fresh);
    api->sanitize = sanitize_of(config);
    if (log_level_from_name(config->log, &level) == 0)
        log_set_level(level);
    readiness_again(api);
    if (json_array_size(waiting))
        log_event(LOG_LEVEL_WARN, "reloaded",
                  json_pack("{s:o, s:s}", "needs_restart", waiting, "hint",
                            "these settings have changed, and take effect at the next start"));
    else {
        json_decref(waiting);
        log_event(LOG_LEVEL_INFO, "reloaded", NULL);
    }
}

static void on_signal(void *context, uint32_t events)
{
    struct daemon *daemon = context;
    struct signalfd_siginfo info;
    (void)events;
    while (read(daemon->signals.fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGHUP)
            reload(daemon);
        else
            drain(daemon);
}

static int watch_signals(struct daemon *daemon, cordon_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    daemon->signals = (struct loop_watch){.ready = on_signal, .context = daemon};
    if (fd < 0 || loop_watch(daemon->api.loop, &daemon->signals, fd, EPOLLIN) < 0)
        return error_sys(err, errno, "signals", "cannot watch for signals");
    return 0;
}

static void on_second(void *context)
{
    struct daemon *daemon = context;
    struct api *api = &daemon->api;
    executions_tick(api);
    idempotency_tick(api);
    batches_tick(api);
    if (!engine_alive(api)) {
        log_event(LOG_LEVEL_ERROR, "warden_gone",
                  json_pack("{s:s}", "hint", "the daemon ends; whoever supervises it starts it again"));
        daemon->exit_code = EXIT_OWN_FAILURE;
        loop_stop(api->loop);
        return;
    }
    if (api->draining)
        finish_draining(daemon);
    loop_set_timer(api->loop, &api->second, clock_us() + (api->draining ? SECOND_US / 20 : SECOND_US));
}

static void read_keys(struct work_item *item)
{
    struct daemon *daemon = (struct daemon *)((char *)item - offsetof(struct daemon, key_reading));
    cordon_error err;
    if (keys_refresh(daemon->api.store, &err) < 0)
        log_error("keys", &err);
}

static void keys_read(struct work_item *item)
{
    struct daemon *daemon = (struct daemon *)((char *)item - offsetof(struct daemon, key_reading));
    loop_set_timer(daemon->api.loop, &daemon->key_timer, clock_us() + KEYS_US);
}

/* So that looking up a key never waits for the disk. */
static void look_at_keys(void *context)
{
    struct daemon *daemon = context;
    daemon->key_reading = (struct work_item){.run = read_keys, .done = keys_read};
    work_submit(daemon->api.disk, &daemon->key_reading);
}

static void record(void *context)
{
    executions_record(context);
}

static void watch_output(void *context)
{
    executions_watch(context);
}

static int open_all(struct daemon *daemon, cordon_error *err)
{
    struct api *api = &daemon->api;
    const struct config *config = api->config;
    struct store_options store = {.data_dir = config->data_dir,
                                  .keep = config->store,
                                  .max_age_s = config->retention_age_s,
                                  .max_bytes = config->retention_bytes,
                                  .most_bytes = config->store_bytes,
                                  .reserve = true};
    api->loop = loop_new();
    api->newest_done = &api->oldest_done;
    api->last_unrecorded = &api->unrecorded;
    api->record_timer = (struct loop_timer){.expired = record, .context = api};
    api->watcher = (struct loop_timer){.expired = watch_output, .context = api};
    api->sanitize = sanitize_of(config);
    int code = api->loop ? watch_signals(daemon, err) : error_nomem(err);
    /* First of all: at an address that is taken nothing is made. */
    if (code == 0)
        code = open_server(daemon, err);
    if (code == 0)
        code = confine_prepare(config->user, config->data_dir, err);
    if (code == 0)
        code = store_open(&store, &api->store, err);
    if (code == 0)
        code = check_reach(api, err);
    if (code == 0)
        code = open_rules(daemon, &api->rules, err);
    if (code == 0)
        code = open_engine(api, err);
    if (code == 0)
        code = confine_prepare(config->user, config->data_dir, err); /* what was made meanwhile */
    if (code == 0)
        code = open_admission(api, err);
    if (code == 0)
        code = held_open(api, err);
    if (code == 0)
        code = guard_open(api, err);
    if (code == 0)
        code = keys_refresh(api->store, err);
    if (code == 0 && confine_is_shared(config->user))
        log_event(LOG_LEVEL_WARN, "shared_user",
                  json_pack("{s:s, s:s, s:s}", "user", "nobody", "effect",
                            "every service that runs as nobody can read the daemon's data and signal it", "fix",
                            "make the user cordon: systemd-sysusers, or useradd --system --home-dir / "
                            "--shell /usr/sbin/nologin cordon"));
    if (code == 0)
        code = confine_self(config->user, config->data_dir, err);
    return code == 0 ? readiness_open(api, err) : code;
}

static void warm_up(struct api *api)
{
    cordon_error err;
    for (char **language = api->config->warm; language && *language; language++)
        if (cordon_engine_warm_language(api->engine, *language, 2, 10000, &err) < 0)
            log_error("warm", &err);
}

static int is_staying(void *context)
{
    const struct daemon *daemon = context;
    return !atomic_load(&daemon->leaving);
}

/* In a thread, for it may take minutes; until it is done, programs are compiled without. */
static void prebuild(struct work_item *item)
{
    struct daemon *daemon = (struct daemon *)((char *)item - offsetof(struct daemon, prebuilding));
    cordon_error err;
    for (char **language = daemon->api.config->warm; language && *language && is_staying(daemon); language++)
        if (cordon_engine_prebuild(daemon->api.engine, *language, 0, is_staying, daemon, &err) < 0 &&
            is_staying(daemon))
            log_error("prebuild", &err);
}

/* In a thread, so that the first result of a language need not wait for its version. */
static void learn_versions(struct work_item *item)
{
    struct daemon *daemon = (struct daemon *)((char *)item - offsetof(struct daemon, version_learning));
    versions_learn(daemon->api.engine, is_staying, daemon);
}

static void done_aside(struct work_item *item)
{
    (void)item;
}

static void close_all(struct daemon *daemon)
{
    struct api *api = &daemon->api;
    if (api->admission)
        executions_stop(api, true);
    atomic_store(&daemon->leaving, true);
    readiness_stop(api);
    work_close(api->work);
    if (api->recorder)
        executions_record(api);
    work_close(take_ptr(&api->disk));
    recorder_free(api->recorder);
    http_server_close(api->server);
    batches_free(api);
    idempotency_free(api);
    if (api->engine)
        cordon_engine_close(api->engine);
    store_close(api->store);
    executions_free(api);
    guard_free(api);
    budget_free(api->budget);
    admission_free(api->admission);
    readiness_free(api);
    redact_rules_close(api->rules);
    loop_free(api->loop);
    free(daemon->tls_cert);
    free(daemon->tls_key);
}

/* A daemon whose every run would be refused listens, because requests may tolerate what is missing, but does not say
 * that it serves. */
static void tell_ready(const struct api *api)
{
    const cordon_error *refusal = readiness_refusal(api);
    const char *address = http_server_address(api->server), *data = api->config->data_dir;
    if (!refusal)
        printf("cordon %s serves at %s, data in %s\n", cordon_version(), address, data);
    else
        printf("cordon %s listens at %s, data in %s, but refuses runs: %s%s%s\n", cordon_version(), address, data,
               refusal->text, *refusal->hint ? "; " : "", refusal->hint);
    fflush(stdout);
    notify_tell(refusal ? "READY=1\nSTATUS=Runs are refused; see the log." : "READY=1");
}

int serve(struct config *config, serve_settle *settle, const void *context)
{
    static struct daemon daemon; /* large */
    cordon_error err = {0};
    enum log_level level;
    daemon = (struct daemon){.api = {.config = config}, .settle = settle, .settle_context = context, .signals.fd = -1};
    if (log_level_from_name(config->log, &level) == 0)
        log_set_level(level);
    if (open_all(&daemon, &err) < 0) {
        int code = report_error(&err, false);
        close_all(&daemon);
        return code;
    }
    struct api *api = &daemon.api;
    settle_unfinished(api);
    warm_up(api);
    api->second = (struct loop_timer){.expired = on_second, .context = &daemon};
    loop_set_timer(api->loop, &api->second, clock_us() + SECOND_US);
    daemon.key_timer = (struct loop_timer){.expired = look_at_keys, .context = &daemon};
    loop_set_timer(api->loop, &daemon.key_timer, clock_us() + KEYS_US);
    tell_ready(api);
    readiness_start(api);
    daemon.prebuilding = (struct work_item){.run = prebuild, .done = done_aside};
    if (api->config->warm && *api->config->warm)
        work_submit(api->work, &daemon.prebuilding);
    daemon.version_learning = (struct work_item){.run = learn_versions, .done = done_aside};
    work_submit(api->work, &daemon.version_learning);
    loop_run(api->loop);
    close_all(&daemon);
    return daemon.exit_code;
}
