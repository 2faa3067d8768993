/* Versions of language runtimes. Asking a runtime costs tens of milliseconds, so the answer is kept in the user's
 * cache, keyed by the file that was asked; a runtime is only ever asked inside a cell. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "engine/cache_place.h"
#include "engine/engine.h"
#include "engine/exchange.h"

struct version {
    struct version *next;
    char *key;
    char *text;
};

/* What distinguishes one installed runtime from the next: the file's identity and time. */
static char *cache_key(const struct manifest *manifest, const char *file)
{
    struct stat st;
    char *key = NULL;
    if (stat(file, &st) < 0 || asprintf(&key, "%s-%llx-%llx-%llx-%llx", manifest->id, (unsigned long long)st.st_dev,
                                        (unsigned long long)st.st_ino, (unsigned long long)st.st_size,
                                        (unsigned long long)st.st_mtim.tv_sec) < 0)
        return NULL;
    return key;
}

static char *read_cached(int cache, const char *key)
{
    char text[128];
    if (cache < 0 || fd_read_text_at(cache, key, text, sizeof text) <= 0)
        return NULL;
    return strdup(text);
}

/* Written beside and renamed, so that a reader never sees half of it. */
static void write_cached(int cache, const char *key, const char *text)
{
    char temporary[64];
    if (cache < 0)
        return;
    snprintf(temporary, sizeof temporary, ".new-%d", getpid());
    auto_close int fd = openat(cache, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (fd_write_all(fd, text, strlen(text)) < 0 || renameat(cache, temporary, cache, key) < 0)
        unlinkat(cache, temporary, 0);
}

/* The first thing that looks like a version: digits with a dot. */
static char *find_version(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (!isdigit((unsigned char)*at) ||
            (at > text && (isalnum((unsigned char)at[-1]) && at[-1] != 'v' && at[-1] != 'o')))
            continue;
        size_t length = strspn(at, "0123456789.");
        if (!memchr(at, '.', length))
            continue;
        while (length && at[length - 1] == '.')
            length--;
        return strndup(at, length);
    }
    return NULL;
}

static char *ask(struct cordon_engine *engine, const struct manifest *manifest, const struct command *command)
{
    struct limits limits = {0};
    if (limits_complete(&limits, "heavy", NULL) < 0)
        return NULL;
    char **etc = calloc(manifest->etc_count + 1, sizeof *etc);
    for (unsigned i = 0; etc && i < manifest->etc_count; i++)
        etc[i] = (char *)manifest->etc[i];
    struct plan_source plan = {.limits = &limits,
                               .optional = CONTROL_BIT(CONTROL_CGROUP),
                               .argv = command->argv,
                               .envp = command->envp,
                               .candidates = command->candidates,
                               .etc = etc};
    struct exchange_input input = {.plan = &plan, .output_cap = 8192, .stdin_fd = -1};
    struct exchange exchange;
    char *version = NULL;
    if (etc && exchange_run(&exchange, engine, &input, NULL) == 0) {
        for (int i = 0; i < 2 && !version; i++) {
            auto_free char *text = capture_text(&exchange.streams[i].capture, &(size_t){0}, NULL);
            version = text && exchange.ended.status == CORDON_STATUS_OK ? find_version(text) : NULL;
        }
        exchange_close(&exchange);
    }
    free(etc);
    return version;
}

static char *look_up(struct cordon_engine *engine, const struct manifest *manifest, const struct command *command,
                     const char *key)
{
    auto_close int cache = cache_place_open(NULL);
    char *text = read_cached(cache, key);
    if (text)
        return text;
    text = ask(engine, manifest, command);
    if (text)
        write_cached(cache, key, text);
    return text;
}

/* The file that a manifest's command for its version runs, or NULL. */
static const char *find_file(const struct manifest *manifest, struct command *command)
{
    struct manifest_step step = {.argv = manifest->version, .argv_count = manifest->version_count};
    struct limits limits = {0};
    char *no_sources[] = {NULL};
    struct command_input input = {.entry = manifest->file, .sources = no_sources, .limits = &limits};
    if (!manifest->version_count || limits_complete(&limits, NULL, NULL) < 0 ||
        command_build(&step, &input, command, NULL) < 0)
        return NULL;
    return environment_find(command->candidates);
}

static const struct version *find_known(struct cordon_engine *engine, const char *key)
{
    pthread_mutex_lock(&engine->versions_lock);
    const struct version *version = engine->versions;
    while (version && strcmp(version->key, key) != 0)
        version = version->next;
    pthread_mutex_unlock(&engine->versions_lock);
    return version;
}

/* Rows are never changed or removed, so they may be read without the lock. */
static const struct version *add(struct cordon_engine *engine, char **key, char *text)
{
    struct version *version = calloc(1, sizeof *version);
    if (!version) {
        free(text);
        return NULL;
    }
    version->key = take_ptr(key);
    version->text = text;
    pthread_mutex_lock(&engine->versions_lock);
    version->next = engine->versions;
    engine->versions = version;
    pthread_mutex_unlock(&engine->versions_lock);
    return version;
}

/* One thread asks, the others wait for its answer; whoever only looks at what is known waits for nobody. */
static const struct version *learn(struct cordon_engine *engine, const struct manifest *manifest,
                                   const struct command *command, char **key)
{
    pthread_mutex_lock(&engine->learning_lock);
    const struct version *version = find_known(engine, *key);
    if (!version)
        version = add(engine, key, look_up(engine, manifest, command, *key));
    pthread_mutex_unlock(&engine->learning_lock);
    return version;
}

/* False when it has to be asked for; with `ask` it is. */
static bool find(struct cordon_engine *engine, const struct manifest *manifest, bool ask, const char **text)
{
    struct command command = {0};
    const char *file = find_file(manifest, &command);
    auto_free char *key = file ? cache_key(manifest, file) : NULL;
    const struct version *version = key ? find_known(engine, key) : NULL;
    bool there = !key || version;
    if (!there && ask)
        version = learn(engine, manifest, &command, &key);
    *text = version ? version->text : NULL;
    command_free(&command);
    return there;
}

bool version_is_known(struct cordon_engine *engine, const struct manifest *manifest)
{
    const char *text;
    return find(engine, manifest, false, &text);
}

const char *version_of(struct cordon_engine *engine, const struct manifest *manifest)
{
    const char *text;
    find(engine, manifest, true, &text);
    return text;
}

void versions_learn(struct cordon_engine *engine, int (*go_on)(void *context), void *context)
{
    const struct manifest *const *manifests;
    size_t count;
    if (catalog_all(engine->catalog, &manifests, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count && go_on(context); i++)
        version_of(engine, manifests[i]);
}

void versions_free(struct cordon_engine *engine)
{
    for (struct version *version = engine->versions, *next; version; version = next) {
        next = version->next;
        free(version->key);
        free(version->text);
        free(version);
    }
    engine->versions = NULL;
}
