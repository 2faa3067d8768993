/* Owns what is read after a manifest, from the folders beside it: notes, bootstraps, programs that prebuild, test
 * runners. Each file is read when it is first needed, because a cold run must not wait for it, or all at once by
 * manifest_read_ahead(), for a caller that gives up its rights to the files. Nothing is read twice. */
#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "lang/manifest_parts.h"

/* Guards the fields that are filled after loading: notes, texts, bootstrap_text and the tiers' regex. */
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

/* A file that was read, by its name beneath the directory of the manifest. */
struct manifest_text {
    struct manifest_text *next;
    char *name, *text;
    size_t length;
};

/* A file in a folder beside the manifest; NULL when memory is short. */
static char *beside(const struct manifest *manifest, const char *folder, const char *name, const char *ending)
{
    const char *slash = strrchr(manifest->path, '/');
    int directory = slash ? (int)(slash + 1 - manifest->path) : 0;
    char *path;
    return asprintf(&path, "%.*s%s/%s%s", directory, manifest->path, folder, name, ending) < 0 ? NULL : path;
}

int manifest_notes(const struct manifest *manifest, const struct manifest_notes **notes, cordon_error *err)
{
    struct manifest *owner = (struct manifest *)manifest;
    auto_free char *path = beside(manifest, "notes", manifest->id, ".yaml");
    if (!path)
        return error_nomem(err);
    pthread_mutex_lock(&late_lock);
    int rc = owner->notes ? 0 : manifest_parse_notes(path, &owner->notes, err);
    pthread_mutex_unlock(&late_lock);
    if (rc == 0)
        *notes = owner->notes;
    return rc;
}

/* Compiles what is still to be compiled; with the lock held. 0 or regcomp's code. */
static int compile_when(struct manifest_tier *tier, char *why, size_t size)
{
    if (!tier->when || tier->regex)
        return 0;
    regex_t *regex = malloc(sizeof *regex);
    int wrong = regex ? regcomp(regex, tier->when, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) : REG_ESPACE;
    if (wrong) {
        regerror(wrong, regex, why, size);
        free(regex);
        return wrong;
    }
    tier->regex = regex;
    return 0;
}

/* A cold run never needs the expressions, so they are checked here and not when the manifest is loaded. */
static int check_tiers(const struct manifest *manifest, cordon_error *err)
{
    char why[80];
    for (unsigned i = 0; i < manifest->warm->tiers_count; i++) {
        struct manifest_tier *tier = &manifest->warm->tiers[i];
        if (compile_when(tier, why, sizeof why) != 0)
            return error_set(err, CORDON_EINVAL, "manifest", "%s: warm: tier '%s': '%s' is no regular expression: %s",
                             manifest->path, tier->name, tier->when, why);
    }
    return 0;
}

static int text_load(const struct manifest *manifest, const char *name, char **text, cordon_error *err)
{
    auto_free char *path = beside(manifest, "warm", name, "");
    char *found = NULL;
    size_t length = 0;
    int rc = path ? file_read(path, MANIFEST_BYTES_MAX, "manifest", &found, &length, err) : error_nomem(err);
    if (rc < 0)
        return rc;
    if (!found || length == 0 || strlen(found) != length) {
        free(found);
        return error_set(err, CORDON_EINVAL, "manifest", "%s: not a text", path);
    }
    *text = found;
    return 0;
}

static int bootstrap_load(const struct manifest *manifest, cordon_error *err)
{
    struct manifest_warm *warm = manifest->warm;
    int rc = check_tiers(manifest, err);
    if (rc == 0 && warm->fork && !warm->fork_text)
        rc = text_load(manifest, warm->fork, &warm->fork_text, err);
    if (rc == 0 && warm->check && !warm->check_text)
        rc = text_load(manifest, warm->check, &warm->check_text, err);
    return rc < 0 ? rc : text_load(manifest, warm->bootstrap, &warm->bootstrap_text, err);
}

int manifest_bootstrap(const struct manifest *manifest, const char **text, cordon_error *err)
{
    struct manifest_warm *warm = manifest->warm;
    if (!warm)
        return error_set(err, CORDON_EINVAL, "manifest", "%s: has no warm section", manifest->path);
    pthread_mutex_lock(&late_lock);
    int rc = warm->bootstrap_text ? 0 : bootstrap_load(manifest, err);
    pthread_mutex_unlock(&late_lock);
    if (rc == 0)
        *text = warm->bootstrap_text;
    return rc;
}

static int read_text(const struct manifest *manifest, const struct manifest_place *place, struct manifest_text *entry,
                     cordon_error *err)
{
    auto_free char *path = beside(manifest, place->folder, place->name, ""), *other = NULL;
    if (!path)
        return error_nomem(err);
    bool is_missing = place->otherwise && access(path, F_OK) < 0 && errno == ENOENT;
    if (is_missing && asprintf(&other, "%s/%s/%s", place->otherwise, place->folder, place->name) < 0)
        return error_nomem(err);
    return file_read(other ? other : path, MANIFEST_BYTES_MAX, "manifest", &entry->text, &entry->length, err);
}

static void text_free(struct manifest_text *entry)
{
    if (!entry)
        return;
    free(entry->name);
    free(entry->text);
    free(entry);
}

/* With the lock held. */
static int find_text(struct manifest *owner, const struct manifest_place *place, const struct manifest_text **found,
                     cordon_error *err)
{
    auto_free char *key = NULL;
    if (asprintf(&key, "%s/%s", place->folder, place->name) < 0)
        return error_nomem(err);
    for (*found = owner->texts; *found; *found = (*found)->next)
        if (!strcmp((*found)->name, key))
            return 0;
    struct manifest_text *entry = calloc(1, sizeof *entry);
    int rc = entry ? read_text(owner, place, entry, err) : error_nomem(err);
    if (rc < 0) {
        text_free(entry);
        return rc;
    }
    entry->name = take_ptr(&key);
    entry->next = owner->texts;
    *found = owner->texts = entry;
    return 0;
}

int manifest_text(const struct manifest *manifest, const struct manifest_place *place, const char **text,
                  size_t *length, cordon_error *err)
{
    const struct manifest_text *found = NULL;
    pthread_mutex_lock(&late_lock);
    int rc = find_text((struct manifest *)manifest, place, &found, err);
    pthread_mutex_unlock(&late_lock);
    if (rc < 0)
        return rc;
    *text = found->text;
    *length = found->length;
    return 0;
}

int manifest_prebuild_source(const struct manifest *manifest, const char **text, size_t *length, cordon_error *err)
{
    const struct manifest_place place = {.folder = "warm", .name = manifest->prebuild->source};
    return manifest_text(manifest, &place, text, length, err);
}

int manifest_read_ahead(const struct manifest *manifest, cordon_error *err)
{
    const struct manifest_notes *notes;
    const char *text;
    size_t length;
    int rc = manifest_notes(manifest, &notes, err);
    if (rc == 0 && manifest->warm)
        rc = manifest_bootstrap(manifest, &text, err);
    if (rc == 0 && manifest->prebuild)
        rc = manifest_prebuild_source(manifest, &text, &length, err);
    return rc;
}

#define TIER_TEXT_MAX 16384

static bool found_in(struct manifest_tier *tier, const char *source, size_t length)
{
    char why[80];
    pthread_mutex_lock(&late_lock);
    int wrong = compile_when(tier, why, sizeof why);
    pthread_mutex_unlock(&late_lock);
    /* The text is a stranger's, and this is not done in a cell: what decides stands near the beginning. */
    regmatch_t whole = {.rm_so = 0, .rm_eo = (regoff_t)(length < TIER_TEXT_MAX ? length : TIER_TEXT_MAX)};
    return !wrong && regexec(tier->regex, source, 1, &whole, REG_STARTEND) == 0;
}

const struct manifest_tier *manifest_tier_for(const struct manifest *manifest, const char *source, size_t length)
{
    const struct manifest_warm *warm = manifest->warm;
    for (unsigned i = 0; warm && i < warm->tiers_count; i++)
        if (!warm->tiers[i].when || found_in(&warm->tiers[i], source, length))
            return &warm->tiers[i];
    return NULL;
}

static void warm_free_late(struct manifest_warm *warm)
{
    free(warm->bootstrap_text);
    free(warm->fork_text);
    free(warm->check_text);
    for (unsigned i = 0; i < warm->tiers_count; i++)
        if (warm->tiers[i].regex) {
            regfree(warm->tiers[i].regex);
            free(warm->tiers[i].regex);
        }
}

void manifest_free_late(struct manifest *manifest)
{
    while (manifest->texts) {
        struct manifest_text *entry = manifest->texts;
        manifest->texts = entry->next;
        text_free(entry);
    }
    if (manifest->warm)
        warm_free_late(manifest->warm);
}
