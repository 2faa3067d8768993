/* Owns the advice on missing modules: a slip in the name, a package of the host, or a file that was not sent. Called by
 * explain(). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "explain/missing.h"
#include "explain/missing_match.h"

/* The name of the module is the last group. */
static const char *const patterns[] = {
    "No module named '([^']+)'",
    "Cannot find (module|package) '([^']+)'",
    "cannot load such file -- ([^ ]+)",
    "cannot find package \"([^\"]+)\"",
    "(package|module) ([^ ]+) is not in",
    "no required module provides package ([^;: ]+)",
    "you may need to install the ([^ ]+) module",
    "there is no package called [^A-Za-z]*([A-Za-z0-9.]+)",
    "module '([^']+)' not found",
    "package ([^ ]+) does not exist",
    "unresolved import `([A-Za-z0-9_]+)",
    "(undeclared crate or module|unlinked crate) `([^`]+)`",
    "can't find crate for `([^`]+)`",
    NULL,
};

/* Debian's spelling: lower case, and a hyphen between words. Owned. */
static char *package_spelling(const char *module)
{
    char *name = malloc(strlen(module) + 1), *to = name;
    for (const char *at = module; name && *at; at++)
        if (!strncmp(at, "::", 2)) {
            *to++ = '-';
            at++;
        } else {
            *to++ = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
        }
    if (name)
        *to = '\0';
    return name;
}

/* The package that Debian usually keeps a module in, owned; NULL where nobody can tell. */
static char *package_of(const struct manifest_notes *notes, const char *module)
{
    for (unsigned i = 0; i < notes->module_packages_count; i++)
        if (!strcmp(notes->module_packages[i].module, module))
            return strdup(notes->module_packages[i].package);
    const char *pattern = notes->module_package;
    const char *place = pattern ? strstr(pattern, "{module}") : NULL;
    if (!place || module[0] == '@')
        return NULL;
    /* The package is that of the outermost module: "lodash/fp" is part of lodash. */
    auto_free char *outer = strndup(module, strcspn(module, "/"));
    auto_free char *name = outer ? package_spelling(outer) : NULL;
    char *text = NULL;
    if (!name || asprintf(&text, "%.*s%s%s", (int)(place - pattern), pattern, name, place + strlen("{module}")) < 0)
        return NULL;
    return text;
}

/* A module that comes with the language and is spelled almost so; NULL when there is none. */
static const char *find_slip(const struct manifest_notes *notes, const char *module)
{
    const char *found = NULL;
    for (unsigned i = 0; i < notes->modules_count; i++) {
        unsigned distance = nearest_distance(module, notes->modules[i]);
        if (distance == 0)
            return NULL;
        if (!found && distance <= (strlen(module) > 4 ? NEAREST_MAX : 1))
            found = notes->modules[i];
    }
    return found;
}

char *hidden_module_hint(const struct explain_input *input, const char *message)
{
    static const char *const hidden[] = {"module '([^']+)' has no attribute",
                                         "cannot import name '[^']*' from '([^']+)' \\(/work/", NULL};
    auto_free char *module = input->source && input->manifest ? missing_match(hidden, message) : NULL;
    char file[128], *text = NULL;
    size_t length;
    if (!module ||
        (size_t)snprintf(file, sizeof file, "%s.%s", module, input->manifest->extensions[0]) >= sizeof file ||
        !input->source(input->context, file, &length))
        return NULL;
    return asprintf(&text, "the program's own %.80s hides the module '%.80s': rename the file", file, module) < 0
               ? NULL
               : text;
}

/* A path names a file of the caller's own, which no package has. */
static char *file_hint(const char *path)
{
    char *text = NULL;
    if (!strncmp(path, "/work/", 6))
        path += 6;
    return asprintf(&text, "%.200s is not in the cell: send it with `files` (they appear in /work)", path) < 0 ? NULL
                                                                                                               : text;
}

/* Python names a module with its packages, and only when these are there. */
static char *inner_hint(const char *message, const char *module)
{
    char *text = NULL;
    int outer = (int)(strrchr(module, '.') - module);
    int rc =
        strstr(message, "is not a package")
            ? asprintf(&text, "'%.*s' is a file here, which hides the package of that name: rename it", outer, module)
            : asprintf(&text, "'%.*s' is there, but has no module '%.80s': check the spelling and the version", outer,
                       module, module + outer + 1);
    return rc < 0 ? NULL : text;
}

char *missing_module_hint(const struct manifest_notes *notes, const char *message)
{
    auto_free char *module = missing_match(patterns, message);
    if (!module)
        return NULL;
    if (module[0] == '.' || module[0] == '/')
        return file_hint(module);
    if (strstr(message, "No module named") && strchr(module, '.'))
        return inner_hint(message, module);
    const char *slip = find_slip(notes, module);
    auto_free char *package = package_of(notes, module);
    char *text = NULL;
    if (asprintf(&text,
                 "'%.80s' is not installed%s%s%s install it on the host%s%s%s, or send it with `files` if it is "
                 "yours; a run has no network to fetch it",
                 module, slip ? ": did you mean '" : ":", slip ? slip : "", slip ? "'? If not," : "",
                 package ? " (Debian: usually " : "", package ? package : "", package ? ")" : "") < 0)
        return NULL;
    return text;
}
