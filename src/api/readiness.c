/* Owns the findings about levels and languages. A proof runs in a thread of `work`; findings are read and written in
 * the loop only. What failed is tried again after a while, because it may have been mended: a package was installed, a
 * busy machine has become idle. */
#include "api/readiness.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/control.h"
#include "base/error.h"
#include "engine/engine.h"
#include "service/log.h"

#define ISOLATION "container"

/* A proof takes a processor for up to a few seconds. Smaller: runs under way are slowed by it. Larger: languages of a
 * busy daemon stay unproven for longer. */
#define IDLE_LOOK_US UINT64_C(100000)
#define PATIENCE_US  UINT64_C(30000000)
/* Smaller: a broken language costs more processor time. Larger: a mended one is reported broken for longer. */
#define AGAIN_US UINT64_C(60000000)

enum finding { UNPROVEN, WORKS, FAILS };

struct subject {
    const struct manifest *manifest;
    enum finding finding;
    cordon_error why;
};

struct readiness {
    struct api *api;
    struct subject *languages;
    size_t count, next;
    bool refuses, isolation_is_due; /* due: settings have changed since it was proven */
    cordon_error refusal;
    struct loop_timer timer;
    uint64_t waiting_since_us;
    /* Of the proof that is under way, in a thread. */
    struct work_item item;
    bool is_proving;
    struct subject *subject; /* NULL: the isolation level */
    uint32_t optional, missing;
    int code;
    cordon_error err;
    atomic_bool leaving;
};

static uint32_t tolerated(const struct api *api)
{
    uint32_t optional = 0;
    for (char **name = api->config->optional; name && *name; name++)
        if (control_from_name(*name) != CONTROL_NONE)
            optional |= CONTROL_BIT(control_from_name(*name));
    return optional;
}

static void warn_missing(uint32_t missing)
{
    for (int i = 0; i < CONTROL_COUNT; i++)
        if (missing & CONTROL_BIT(i))
            log_event(LOG_LEVEL_WARN, "control_missing",
                      json_pack("{s:s, s:s, s:s}", "control", control_name((enum control)i), "effect",
                                "runs go on without it, as `optional` says", "fix", control_fix((enum control)i)));
}

static void settle_isolation(struct readiness *readiness)
{
    bool refused = readiness->refuses;
    readiness->refuses = readiness->code < 0;
    readiness->refusal = readiness->err;
    if (!readiness->refuses)
        warn_missing(readiness->missing);
    else if (!refused)
        log_error("not_ready", &readiness->err);
}

static void prove_isolation(struct readiness *readiness)
{
    readiness->missing = 0;
    readiness->code =
        engine_prove_isolation(readiness->api->engine, readiness->optional, &readiness->missing, &readiness->err);
}

static int list_languages(struct readiness *readiness, cordon_error *err)
{
    const struct manifest *const *manifests;
    size_t count = 0;
    int code = catalog_all(readiness->api->engine->catalog, &manifests, &count, err);
    if (code < 0)
        return code;
    readiness->languages = calloc(count + 1, sizeof *readiness->languages);
    if (!readiness->languages)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (language_is_installed(manifests[i]))
            readiness->languages[readiness->count++].manifest = manifests[i];
    return 0;
}

static void look(void *context);

int readiness_open(struct api *api, cordon_error *err)
{
    struct readiness *readiness = calloc(1, sizeof *readiness);
    if (!readiness)
        return error_nomem(err);
    api->readiness = readiness;
    readiness->api = api;
    readiness->timer = (struct loop_timer){.expired = look, .context = readiness};
    readiness->optional = tolerated(api);
    prove_isolation(readiness);
    settle_isolation(readiness);
    return list_languages(readiness, err);
}

/* The languages, in a thread */

static int is_wanted(void *context)
{
    const struct readiness *readiness = context;
    return !atomic_load(&readiness->leaving);
}

static void prove(struct work_item *item)
{
    struct readiness *readiness = (struct readiness *)((char *)item - offsetof(struct readiness, item));
    const struct proof_watch watch = {.go_on = is_wanted, .context = readiness};
    if (!readiness->subject)
        prove_isolation(readiness);
    else
        readiness->code = engine_prove_language(readiness->api->engine, readiness->subject->manifest,
                                                readiness->optional, &watch, &readiness->err);
}

static bool has_failed(const struct readiness *readiness)
{
    for (size_t i = 0; i < readiness->count; i++)
        if (readiness->languages[i].finding == FAILS)
            return true;
    return false;
}

static void begin_again(struct readiness *readiness)
{
    readiness->next = 0;
    if (readiness->refuses || has_failed(readiness))
        loop_set_timer(readiness->api->loop, &readiness->timer, clock_us() + AGAIN_US);
}

static void settle(struct subject *subject, int code, const cordon_error *err)
{
    enum finding before = subject->finding;
    subject->finding = code < 0 ? FAILS : WORKS;
    subject->why = *err;
    if (code < 0 && before != FAILS)
        log_error("language_fails", err);
    else if (code == 0 && before == FAILS)
        log_event(LOG_LEVEL_INFO, "language_works", json_pack("{s:s}", "language", subject->manifest->id));
}

static void proven(struct work_item *item)
{
    struct readiness *readiness = (struct readiness *)((char *)item - offsetof(struct readiness, item));
    readiness->is_proving = false;
    if (atomic_load(&readiness->leaving))
        return;
    readiness->waiting_since_us = clock_us();
    if (readiness->subject)
        settle(readiness->subject, readiness->code, &readiness->err);
    else
        settle_isolation(readiness);
    if (readiness->refuses && !readiness->isolation_is_due)
        begin_again(readiness);
    else
        look(readiness);
}

/* The next language that still has to be proven; NULL at the end of the list. */
static struct subject *find_next(struct readiness *readiness)
{
    while (readiness->next < readiness->count && readiness->languages[readiness->next].finding == WORKS)
        readiness->next++;
    return readiness->next < readiness->count ? &readiness->languages[readiness->next] : NULL;
}

static void submit(struct readiness *readiness, struct subject *subject)
{
    readiness->is_proving = true;
    readiness->subject = subject;
    readiness->optional = tolerated(readiness->api);
    readiness->item = (struct work_item){.run = prove, .done = proven};
    work_submit(readiness->api->work, &readiness->item);
}

static void prove_next(struct readiness *readiness)
{
    struct api *api = readiness->api;
    uint64_t now = clock_us();
    struct subject *subject = api->config->prove_languages ? find_next(readiness) : NULL;
    if (!subject) {
        begin_again(readiness);
        return;
    }
    bool is_busy = admission_running(api->admission) > 0 || admission_queued(api->admission) > 0;
    if (is_busy && now - readiness->waiting_since_us < PATIENCE_US)
        loop_set_timer(api->loop, &readiness->timer, now + IDLE_LOOK_US);
    else {
        readiness->next++;
        submit(readiness, subject);
    }
}

static void look(void *context)
{
    struct readiness *readiness = context;
    if (readiness->is_proving || atomic_load(&readiness->leaving))
        return;
    if (readiness->refuses || readiness->isolation_is_due) {
        readiness->isolation_is_due = false;
        submit(readiness, NULL);
    } else
        prove_next(readiness);
}

void readiness_start(struct api *api)
{
    struct readiness *readiness = api->readiness;
    readiness->waiting_since_us = clock_us();
    if (readiness->refuses)
        begin_again(readiness);
    else
        look(readiness);
}

void readiness_again(struct api *api)
{
    api->readiness->isolation_is_due = true;
    look(api->readiness);
}

void readiness_stop(struct api *api)
{
    if (api->readiness)
        atomic_store(&api->readiness->leaving, true);
}

void readiness_free(struct api *api)
{
    if (!api->readiness)
        return;
    loop_drop_timer(api->loop, &api->readiness->timer);
    free(api->readiness->languages);
    free(api->readiness);
    api->readiness = NULL;
}

/* What is told */

const cordon_error *readiness_refusal(const struct api *api)
{
    return api->readiness->refuses ? &api->readiness->refusal : NULL;
}

json_t *readiness_json(const struct api *api)
{
    static const char *const words[] = {[UNPROVEN] = "unproven", [WORKS] = "works", [FAILS] = "fails"};
    const struct readiness *readiness = api->readiness;
    json_t *languages = json_object(), *failures = json_array();
    for (size_t i = 0; i < readiness->count; i++) {
        const struct subject *subject = &readiness->languages[i];
        json_object_set_new(languages, subject->manifest->id, json_string(words[subject->finding]));
        if (subject->finding == FAILS)
            json_array_append_new(
                failures, json_pack("{s:s, s:s*}", "language", subject->manifest->id, "cause", subject->why.text));
    }
    return json_pack("{s:s, s:{s:s}, s:o, s:o}", "status", json_array_size(failures) ? "degraded" : "ready",
                     "isolation", ISOLATION, "works", "languages", languages, "failures", failures);
}
