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

/* The directory of the file this code was loaded from: the library if it is shared, else the executable. Found in the
 * process's own map, which works for both and in a static executable. */
char *places_own_directory(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return NULL;
    unsigned long here = (unsigned long)(void *)&places_own_directory;
    auto_free char *line = NULL;
    size_t capacity = 0;
    char *directory = NULL;
    while (!directory && getline(&line, &capacity, maps) > 0) {
        unsigned long from, to;
        char *path = strchr(line, '/');
        if (sscanf(line, "%lx-%lx", &from, &to) != 2 || here < from || here >= to || !path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        *strrchr(path, '/') = '\0';
        directory = strdup(path);
    }
    fclose(maps);
    return directory;
}

static char *join(const char *directory, const char *name)
{
    char *path = NULL;
    return directory && asprintf(&path, "%s/%s", directory, name) >= 0 ? path : NULL;
}

int places_warden(const char *own, const char *given, char **path, cordon_error *err)
{
    char *tries[] = {given ? strdup(given) : NULL, join(own, "cordon-warden"),
                     join(own, "../libexec/cordon/cordon-warden"), join(CORDON_LIBEXECDIR, "cordon-warden")};
    *path = NULL;
    for (unsigned i = given ? 0 : 1; i < (given ? 1 : ARRAY_LEN(tries)) && !*path; i++)
        if (tries[i] && access(tries[i], X_OK) == 0)
            *path = take_ptr(&tries[i]);
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++)
        free(tries[i]);
    if (*path)
        return 0;
    error_set(err, CORDON_ESYSTEM, "warden", "cannot find the executable %s", given ? given : "cordon-warden");
    return error_hint(err, "it is installed in %s; `make` builds it beside cordon", CORDON_LIBEXECDIR);
}

int places_zygote(const char *own)
{
    char *tries[] = {join(own, "libcordon_zygote.so"), join(own, "../libexec/cordon/libcordon_zygote.so"),
                     join(CORDON_LIBEXECDIR, "libcordon_zygote.so")};
    int found = -1;
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++) {
        if (found < 0 && tries[i])
            found = open(tries[i], O_RDONLY | O_CLOEXEC);
        free(tries[i]);
    }
    return found;
}

int places_languages(const char *own, const char *given, char ***directories, cordon_error *err)
{
    char *tries[] = {given ? strdup(given) : strdup("/etc/cordon/languages"), join(own, "../languages"),
                     join(own, "../share/cordon/languages"), join(CORDON_DATADIR, "languages")};
    size_t count = 0;
    char **list = calloc(ARRAY_LEN(tries) + 1, sizeof *list);
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++)
        if (list && tries[i] && (i == 0 || !given) && access(tries[i], R_OK | X_OK) == 0)
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
