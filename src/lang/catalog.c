/* Owns the set of languages: which manifest answers to which name, and when each file is read. Must not read more than
 * the one file when a language is asked for by its id, because a cold run waits for it. Called by the engine. */
#include "lang/catalog.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"

#define NAME_MAX_LENGTH 40

struct catalog {
    pthread_mutex_t lock;
    char **directories;
    struct manifest **manifests; /* those read so far; sorted by id once complete */
    size_t count;
    bool complete; /* every directory was read */
};

int catalog_open(const char *const *directories, struct catalog **catalog, cordon_error *err)
{
    size_t count = 0;
    while (directories[count])
        count++;
    struct catalog *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_nomem(err);
    pthread_mutex_init(&opened->lock, NULL);
    opened->directories = calloc(count + 1, sizeof *opened->directories);
    for (size_t i = 0; opened->directories && i < count; i++)
        if (!(opened->directories[i] = strdup(directories[i])))
            break;
    if (!opened->directories || (count && !opened->directories[count - 1])) {
        catalog_close(opened);
        return error_nomem(err);
    }
    *catalog = opened;
    return 0;
}

void catalog_close(struct catalog *catalog)
{
    if (!catalog)
        return;
    for (size_t i = 0; i < catalog->count; i++)
        manifest_free(catalog->manifests[i]);
    free(catalog->manifests);
    for (char **directory = catalog->directories; directory && *directory; directory++)
        free(*directory);
    free(catalog->directories);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

/* What may become part of a path: no separator, no dot, nothing hidden. Aliases may hold more ("c++"). */
static bool is_id(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > NAME_MAX_LENGTH)
        return false;
    for (const char *c = name; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-' && *c != '_')
            return false;
    return name[0] != '-';
}

static struct manifest *by_id(const struct catalog *catalog, const char *id)
{
    for (size_t i = 0; i < catalog->count; i++)
        if (strcmp(catalog->manifests[i]->id, id) == 0)
            return catalog->manifests[i];
    return NULL;
}

/* Reads <directory>/<id>.yaml unless the id is known already. ENOENT in `err` when there is no such file. */
static int read_one(struct catalog *catalog, const char *directory, const char *id, struct manifest **manifest,
                    cordon_error *err)
{
    auto_free char *path = NULL;
    struct manifest **manifests = realloc(catalog->manifests, (catalog->count + 1) * sizeof(struct manifest *));
    if (!manifests)
        return error_nomem(err);
    catalog->manifests = manifests;
    if (asprintf(&path, "%s/%s.yaml", directory, id) < 0)
        return error_nomem(err);
    int rc = manifest_load(path, manifest, err);
    if (rc == 0)
        catalog->manifests[catalog->count++] = *manifest;
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp((*(struct manifest *const *)a)->id, (*(struct manifest *const *)b)->id);
}

static int read_directory(struct catalog *catalog, const char *path, cordon_error *err)
{
    DIR *directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_sys(err, errno, "languages", "cannot open %s", path);
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(directory));) {
        char id[NAME_MAX_LENGTH + 1];
        char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0 || (size_t)(dot - entry->d_name) >= sizeof id)
            continue;
        snprintf(id, sizeof id, "%.*s", (int)(dot - entry->d_name), entry->d_name);
        struct manifest *manifest;
        if (is_id(id) && !by_id(catalog, id))
            rc = read_one(catalog, path, id, &manifest, err);
    }
    closedir(directory);
    return rc;
}

static int read_all(struct catalog *catalog, cordon_error *err)
{
    if (catalog->complete)
        return 0;
    for (char **directory = catalog->directories; *directory; directory++) {
        int rc = read_directory(catalog, *directory, err);
        if (rc < 0)
            return rc;
    }
    if (catalog->count == 0) {
        error_set(err, CORDON_ENOTFOUND, "languages", "no language manifests in %s",
                  catalog->directories[0] ? catalog->directories[0] : "(no directory)");
        error_hint(err, "reinstall Cordon, or name the directory of the manifests");
        return CORDON_ENOTFOUND;
    }
    qsort(catalog->manifests, catalog->count, sizeof(struct manifest *), compare_ids);
    catalog->complete = true;
    return 0;
}

static int unknown_language(const struct catalog *catalog, const char *name, cordon_error *err)
{
    const char *nearest = NULL;
    unsigned best = NEAREST_MAX + 1;
    for (size_t i = 0; i < catalog->count; i++) {
        const struct manifest *manifest = catalog->manifests[i];
        for (unsigned n = 0; n <= manifest->aliases_count; n++) {
            const char *known = n == 0 ? manifest->id : manifest->aliases[n - 1];
            unsigned distance = nearest_distance(name, known);
            if (distance < best && distance < strlen(known)) {
                best = distance;
                nearest = known;
            }
        }
    }
    error_set(err, CORDON_ENOTFOUND, "language", "unknown language '%.*s'", NAME_MAX_LENGTH, name);
    if (err)
        snprintf(err->field, sizeof err->field, "/language");
    if (nearest)
        error_hint(err, "did you mean '%s'? cordon languages lists them", nearest);
    else
        error_hint(err, "cordon languages lists them");
    return CORDON_ENOTFOUND;
}

static bool answers_to(const struct manifest *manifest, const char *name)
{
    if (strcmp(manifest->id, name) == 0)
        return true;
    for (unsigned i = 0; i < manifest->aliases_count; i++)
        if (strcmp(manifest->aliases[i], name) == 0)
            return true;
    return false;
}

static int find(struct catalog *catalog, const char *given, const struct manifest **manifest, cordon_error *err)
{
    char name[NAME_MAX_LENGTH + 1];
    snprintf(name, sizeof name, "%s", given);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (strlen(given) > NAME_MAX_LENGTH)
        name[0] = '\0';

    struct manifest *found = by_id(catalog, name);
    if (!found && is_id(name) && !catalog->complete)
        for (char **directory = catalog->directories; *directory && !found; directory++) {
            cordon_error why;
            int rc = read_one(catalog, *directory, name, &found, &why);
            if (rc < 0 && why.sys_errno != ENOENT && why.sys_errno != ENOTDIR) {
                if (err)
                    *err = why;
                return rc;
            }
        }
    if (!found) {
        int rc = read_all(catalog, err);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < catalog->count && !found; i++)
            if (answers_to(catalog->manifests[i], name))
                found = catalog->manifests[i];
    }
    if (!found)
        return unknown_language(catalog, given, err);
    *manifest = found;
    return 0;
}

int catalog_find(struct catalog *catalog, const char *name, const struct manifest **manifest, cordon_error *err)
{
    pthread_mutex_lock(&catalog->lock);
    int rc = find(catalog, name, manifest, err);
    pthread_mutex_unlock(&catalog->lock);
    return rc;
}

static int find_by_file(struct catalog *catalog, const char *file, const struct manifest **manifest, cordon_error *err)
{
    int rc = read_all(catalog, err);
    if (rc < 0)
        return rc;
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < catalog->count; i++)
        for (unsigned n = 0; n < catalog->manifests[i]->extensions_count; n++)
            if (strcasecmp(catalog->manifests[i]->extensions[n], dot + 1) == 0) {
                *manifest = catalog->manifests[i];
                return 0;
            }
    error_set(err, CORDON_ENOTFOUND, "language", "no language has files named like '%.80s'", name);
    error_hint(err, "name it with -l; cordon languages lists them");
    return CORDON_ENOTFOUND;
}

int catalog_find_by_file(struct catalog *catalog, const char *file, const struct manifest **manifest, cordon_error *err)
{
    pthread_mutex_lock(&catalog->lock);
    int rc = find_by_file(catalog, file, manifest, err);
    pthread_mutex_unlock(&catalog->lock);
    return rc;
}

int catalog_all(struct catalog *catalog, const struct manifest *const **manifests, size_t *count, cordon_error *err)
{
    pthread_mutex_lock(&catalog->lock);
    int rc = read_all(catalog, err);
    if (rc == 0) {
        /* Complete, so the array no longer moves and may be read without the lock. */
        *manifests = (const struct manifest *const *)catalog->manifests;
        *count = catalog->count;
    }
    pthread_mutex_unlock(&catalog->lock);
    return rc;
}
