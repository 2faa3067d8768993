/* Where the project's own files are: beside the executable or library in a build tree, or in the installed places. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"

/* The file this code was loaded from: the library if it is shared, else the executable. Found in the process's own map,
 * which works for both and in a static executable. */
static char *own_file(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return NULL;
    unsigned long here = (unsigned long)(void *)&own_file;
    auto_free char *line = NULL;
    size_t capacity = 0;
    char *file = NULL;
    while (!file && getline(&line, &capacity, maps) > 0) {
        unsigned long from, to;
        char *path = strchr(line, '/');
        if (sscanf(line, "%lx-%lx", &from, &to) != 2 || here < from || here >= to || !path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        file = strdup(path);
    }
    fclose(maps);
    return file;
}

char *places_own_directory(void)
{
    char *file = own_file();
    if (file)
        *strrchr(file, '/') = '\0';
    return file;
}

/* A program that links the library statically may lie in a directory where others can put files, such as /tmp, and what
 * is found there is executed with the caller's rights. So it must belong to the superuser, to the caller, or to whoever
 * owns the file that this code came from. */
static bool is_trusted(const char *path)
{
    struct stat found, own;
    if (stat(path, &found) < 0)
        return false;
    if (found.st_uid == 0 || found.st_uid == geteuid())
        return true;
    auto_free char *file = own_file();
    return file && stat(file, &own) == 0 && found.st_uid == own.st_uid;
}

static char *join(const char *directory, const char *name)
{
    char *path = NULL;
    return directory && asprintf(&path, "%s/%s", directory, name) >= 0 ? path : NULL;
}

/* The first place that has a file of this name: the build tree, an installed tree that may have been moved, seen from
 * its executables and from its libraries, and the place that was set when Cordon was built. */
static char *find_program(const char *own, const char *name, int mode)
{
    char *tries[] = {join(own, name), NULL, NULL, join(CORDON_LIBEXECDIR, name)};
    static const char *const installed[] = {"../libexec/cordon", CORDON_LIBDIR_TO_LIBEXECDIR};
    char *found = NULL;
    for (unsigned i = 0; i < ARRAY_LEN(installed); i++) {
        auto_free char *directory = join(own, installed[i]);
        tries[i + 1] = join(directory, name);
    }
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++) {
        if (!found && tries[i] && access(tries[i], mode) == 0 && is_trusted(tries[i]))
            found = take_ptr(&tries[i]);
        free(tries[i]);
    }
    return found;
}

int places_warden(const char *own, const char *given, char **path, cordon_error *err)
{
    if (given)
        *path = access(given, X_OK) == 0 ? strdup(given) : NULL;
    else
        *path = find_program(own, "cordon-warden", X_OK);
    if (*path)
        return 0;
    error_set(err, CORDON_ESYSTEM, "warden", "cannot find the executable %s", given ? given : "cordon-warden");
    return error_hint(err, "it is installed in %s; `make` builds it beside cordon", CORDON_LIBEXECDIR);
}

int places_zygote(const char *own)
{
    auto_free char *path = find_program(own, "libcordon_zygote.so", R_OK);
    return path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

int places_languages(const char *own, const char *given, char ***directories, cordon_error *err)
{
    char *tries[] = {given ? strdup(given) : strdup("/etc/cordon/languages"), join(own, "../languages"),
                     join(own, "../share/cordon/languages"), join(own, CORDON_LIBDIR_TO_DATADIR "/languages"),
                     join(CORDON_DATADIR, "languages")};
    size_t count = 0;
    char **list = calloc(ARRAY_LEN(tries) + 1, sizeof *list);
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++)
        if (list && tries[i] && (i == 0 || (!given && is_trusted(tries[i]))) && access(tries[i], R_OK | X_OK) == 0)
            list[count++] = take_ptr(&tries[i]);
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++)
        free(tries[i]);
    if (!list)
        return error_nomem(err);
    if (!count) {
        free(list);
        return error_set(err, CORDON_ESYSTEM, "languages", "cannot find the language manifests%s%s",
                         given ? " in " : "", given ? given : "");
    }
    *directories = list;
    return 0;
}

void places_free(char **directories)
{
    for (char **at = directories; at && *at; at++)
        free(*at);
    free(directories);
}

const char *environment_find(char *const *candidates)
{
    struct stat st;
    for (; *candidates; candidates++)
        if (!strncmp(*candidates, "/work/", 6) || (stat(*candidates, &st) == 0 && S_ISREG(st.st_mode)))
            return *candidates;
    return NULL;
}
