/* Owns the advice on missing files and directories, by the path that the message names. Called by explain(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "explain/missing.h"
#include "explain/missing_match.h"

#define WORK "/work/"

/* Of "TYPE: MESSAGE"; the path is the last group. */
static const char *const patterns[] = {
    "[Nn]o such file or directory: '([^']+)'$",             /* Python */
    "no such file or directory, [a-z]+ '([^']+)'",          /* Node.js */
    "No such file or directory @ [a-z0-9_]+ - (.+)$",       /* Ruby */
    "(open|stat|lstat|chdir|mkdir) ([^ :]+): no such file", /* Go */
    "FileNotFoundException: ([^ ]+) \\(No such file",       /* Java */
    "NoSuchFileException: ([^ ]+)$",                        /* Java */
    "cannot open file '([^']+)': No such file",             /* R */
    "^[^ :]+: ([^ :]+): No such file or directory$",        /* shells and their commands, Lua */
    NULL,
};

static const char *const texts[] = {"No such file or directory", "ENOENT", "NoSuchFileException"};

static bool tells_of_missing(const char *said)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcasestr(said, texts[i]))
            return true;
    return false;
}

static char *header_hint(const char *said)
{
    static const char *const headers[] = {"([^ :]+): No such file or directory$", NULL};
    auto_free char *name = missing_match(headers, said);
    char *text = NULL;
    if (!name || asprintf(&text,
                          "%.200s is not in the cell: send it with `files` if it is yours; the headers of a library "
                          "are installed on the host (Debian: a package whose name ends in -dev)",
                          name) < 0)
        return NULL;
    return text;
}

/* Which of the parts of the path is missing is not in the message, so both are named. */
static char *path_hint(const char *path)
{
    char *text = NULL;
    int rc;
    if (!strncmp(path, WORK, strlen(WORK)))
        path += strlen(WORK);
    const char *slash = strrchr(path, '/');
    if (path[0] == '/')
        rc = asprintf(&text,
                      "a cell does not see the host's files: send %.200s with `files` (they appear in /work), or mount "
                      "its directory",
                      path);
    else if (slash)
        rc = asprintf(&text,
                      "to write %.200s, make its directory %.*s first; to read it, send it with `files` (they appear "
                      "in /work)",
                      path, (int)(slash - path < 200 ? slash - path : 200), path);
    else
        rc = asprintf(&text, "there is no %.200s in /work: send it with `files`, or mount its directory", path);
    return rc < 0 ? NULL : text;
}

char *missing_file_hint(const char *said, bool compiling)
{
    if (!tells_of_missing(said))
        return NULL;
    if (compiling)
        return header_hint(said);
    auto_free char *path = missing_match(patterns, said);
    if (path)
        return path_hint(path);
    return strdup("a cell has files of its own: send yours with `files` (they appear in /work), or mount their "
                  "directory");
}
