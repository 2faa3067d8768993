/* Owns the proofs that languages work. The program is the first example of the language's notes. Called for the list of
 * languages, from any thread; never on the way of a run. */
#include "engine/language_proofs.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/fd.h"
#include "base/hex.h"
#include "engine/cache_place.h"
#include "engine/compile_key.h"

/* More at a time would only compete for the processors, fewer would leave some idle. */
#define WORKERS_MAX  8
#define PROBLEM_SIZE 160
/* A broken language that somebody keeps asking for costs a run in this time, and one that was repaired without a change
 * of any file in the key stays broken for as long. */
#define FAILURE_KEPT_US 60000000

/* A proof with the key it was made for. */
struct kept_proof {
    struct kept_proof *next;
    const struct manifest *manifest;
    struct compile_key key;
    enum proof_state state;
    uint64_t until_us;
    char problem[PROBLEM_SIZE];
};

struct proving {
    struct cordon_engine *engine;
    struct proof *proofs;
    size_t count;
    atomic_size_t next;
    int cache; /* -1: none */
};

static const struct manifest_example *find_example(const struct manifest *manifest)
{
    const struct manifest_notes *notes;
    if (manifest_notes(manifest, &notes, NULL) < 0 || !notes->examples_count)
        return NULL;
    return &notes->examples[0];
}

/* The first file of a step's command in the environment; NULL for none, or for one that the compile step makes. */
static const char *find_tool(const struct manifest_step *step, const struct manifest *manifest, struct command *command)
{
    struct limits limits = {0};
    char *no_sources[] = {NULL};
    struct command_input input = {.entry = manifest->file, .sources = no_sources, .limits = &limits};
    if (!step || limits_complete(&limits, NULL, NULL) < 0 || command_build(step, &input, command, NULL) < 0)
        return NULL;
    const char *file = environment_find(command->candidates);
    return file && strncmp(file, "/work/", 6) != 0 ? file : NULL;
}

/* Everything the outcome depends on: the commands, the files they begin with, what is installed, and the program. */
static int make_key(const struct manifest *manifest, const struct manifest_example *example, struct compile_key *key)
{
    const struct manifest_step version = {.argv = manifest->version, .argv_count = manifest->version_count};
    const struct manifest_step *steps[] = {manifest->run, manifest->compile, &version};
    struct command commands[ARRAY_LEN(steps)] = {{0}};
    const char *tools[ARRAY_LEN(steps) + 1] = {NULL};
    struct limits limits = {0};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const char *tool = find_tool(steps[i], manifest, &commands[i]);
        if (tool)
            tools[count++] = tool;
    }
    struct plan_file files[] = {
        {.path = (char *)"program", .content = (char *)example->code, .length = strlen(example->code)},
        {.path = (char *)"output", .content = (char *)example->output, .length = strlen(example->output)}};
    struct plan_source plan = {.argv = commands[0].argv,
                               .envp = commands[0].envp,
                               .limits = &limits,
                               .files = files,
                               .file_count = ARRAY_LEN(files)};
    struct compile_key_input input = {.language = manifest->id,
                                      .environment = "host",
                                      .plan = &plan,
                                      .outputs = manifest->compile ? manifest->compile->argv : NULL,
                                      .outputs_count = manifest->compile ? manifest->compile->argv_count : 0,
                                      .tools = tools,
                                      .markers = compile_key_markers};
    int code = compile_key_make(&input, key);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        command_free(&commands[i]);
    return code;
}

static bool is_in_cache(int cache, const char *id, const char *hex)
{
    char text[2 * SHA256_BYTES + 2];
    struct stat st;
    if (cache < 0 || fstatat(cache, id, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
        !cache_place_is_own(&st))
        return false;
    return fd_read_text_at(cache, id, text, sizeof text) > 0 && !strcmp(text, hex);
}

/* Written beside and renamed, so that a reader never sees half of it. A failure costs time only. */
static void put_in_cache(int cache, const char *id, const char *hex)
{
    char temporary[96];
    if (cache < 0)
        return;
    snprintf(temporary, sizeof temporary, ".new-%d-%.40s", getpid(), id);
    auto_close int fd = openat(cache, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (fd_write_all(fd, hex, strlen(hex)) < 0 || renameat(cache, temporary, cache, id) < 0)
        unlinkat(cache, temporary, 0);
}

static const struct kept_proof *find_kept(const struct cordon_engine *engine, const struct manifest *manifest,
                                          const struct compile_key *key)
{
    const struct kept_proof *kept = engine->proofs;
    uint64_t now_us = clock_us();
    while (kept && (kept->manifest != manifest || memcmp(&kept->key, key, sizeof *key) != 0 || kept->until_us < now_us))
        kept = kept->next;
    return kept;
}

static void keep(struct cordon_engine *engine, const struct proof *proof, const struct compile_key *key)
{
    struct kept_proof *kept = calloc(1, sizeof *kept);
    if (!kept)
        return;
    kept->manifest = proof->manifest;
    kept->key = *key;
    kept->state = proof->state;
    kept->until_us = proof->state == PROOF_WORKS ? UINT64_MAX : clock_us() + FAILURE_KEPT_US;
    snprintf(kept->problem, sizeof kept->problem, "%s", proof->problem ? proof->problem : "");
    pthread_mutex_lock(&engine->kept_proofs_lock);
    kept->next = engine->proofs;
    engine->proofs = kept;
    pthread_mutex_unlock(&engine->kept_proofs_lock);
}

void proofs_keep_success(struct cordon_engine *engine, const struct manifest *manifest)
{
    const struct proof proof = {.manifest = manifest, .state = PROOF_WORKS};
    const struct manifest_example *example = find_example(manifest);
    struct compile_key key;
    if (example && make_key(manifest, example, &key) == 0)
        keep(engine, &proof, &key);
}

static int go_on(void *context)
{
    (void)context;
    return 1;
}

/* The control group may be missing: it has no part in whether a language works. */
static void run_example(struct cordon_engine *engine, struct proof *proof)
{
    const struct proof_watch watch = {.go_on = go_on};
    cordon_error err = {0};
    int code = engine_prove_language(engine, proof->manifest, CONTROL_BIT(CONTROL_CGROUP), &watch, &err);
    bool fails = code == CORDON_ESTATE && !strcmp(err.step, "language");
    proof->state = code == 0 ? PROOF_WORKS : fails ? PROOF_FAILS : PROOF_NONE;
    /* The text begins with the id, which stands beside it in the list. */
    size_t skip = strlen(proof->manifest->id) + strlen(": ");
    if (fails)
        proof->problem = strdup(strlen(err.text) > skip ? err.text + skip : err.text);
}

static void prove(struct proving *proving, struct proof *proof)
{
    struct cordon_engine *engine = proving->engine;
    const struct manifest_example *example = find_example(proof->manifest);
    struct compile_key key;
    char hex[2 * SHA256_BYTES + 1];
    if (!example || make_key(proof->manifest, example, &key) < 0)
        return;
    pthread_mutex_lock(&engine->kept_proofs_lock);
    const struct kept_proof *kept = find_kept(engine, proof->manifest, &key);
    pthread_mutex_unlock(&engine->kept_proofs_lock);
    if (kept) {
        proof->state = kept->state;
        proof->problem = *kept->problem ? strdup(kept->problem) : NULL;
        return;
    }
    hex_text(key.bytes, sizeof key.bytes, hex);
    bool cached = is_in_cache(proving->cache, proof->manifest->id, hex);
    if (cached)
        proof->state = PROOF_WORKS;
    else
        run_example(engine, proof);
    if (proof->state == PROOF_WORKS && !cached)
        put_in_cache(proving->cache, proof->manifest->id, hex); /* the engine has it by now */
    else if (proof->state != PROOF_NONE)
        keep(engine, proof, &key);
}

static void *work(void *context)
{
    struct proving *proving = context;
    for (size_t i; (i = atomic_fetch_add(&proving->next, 1)) < proving->count;)
        prove(proving, &proving->proofs[i]);
    return NULL;
}

void proofs_make(struct cordon_engine *engine, struct proof *proofs, size_t count)
{
    struct proving proving = {.engine = engine, .proofs = proofs, .count = count};
    pthread_t threads[WORKERS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long wanted = processors < WORKERS_MAX ? processors : WORKERS_MAX;
    long started = 0;
    /* One list at a time: a second caller finds what the first has proved. */
    pthread_mutex_lock(&engine->proofs_lock);
    proving.cache = cache_place_open("proofs");
    while (started < wanted - 1 && pthread_create(&threads[started], NULL, work, &proving) == 0)
        started++;
    work(&proving);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    cleanup_close(&proving.cache);
    pthread_mutex_unlock(&engine->proofs_lock);
}

void proofs_free(struct proof *proofs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(proofs[i].problem);
    free(proofs);
}

void proofs_forget(struct cordon_engine *engine)
{
    for (struct kept_proof *kept = engine->proofs, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
    engine->proofs = NULL;
}
