/* Owns reading what the command line names: it opens host files as the caller and takes words apart. It must not judge
 * what the library judges better (paths inside the cell, limits, names of controls). Called by the run command. */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/report.h"
#include "cli/terminal.h"

static int too_large(const char *name, cordon_error *err)
{
    return error_set(err, CORDON_EINVAL, "input", "%s is larger than %zu MiB", name, INPUT_BYTES_MAX >> 20);
}

/* The caller named a wrong file: bad input, not a failure of Cordon. */
static int unreadable(int sys_errno, const char *name, const char *hint, cordon_error *err)
{
    error_set(err, CORDON_EINVAL, "input", "cannot read %s: %s", name, strerror(sys_errno));
    if (err)
        err->sys_errno = sys_errno;
    return hint ? error_hint(err, "%s", hint) : CORDON_EINVAL;
}

static int read_whole(int fd, const char *name, struct buf *content, cordon_error *err)
{
    char chunk[64 << 10];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return unreadable(errno, name, NULL, err);
        if (n == 0)
            return content->failed ? error_nomem(err) : 0;
        if (content->length + (size_t)n > INPUT_BYTES_MAX)
            return too_large(name, err);
        buf_append(content, chunk, (size_t)n);
    }
}

int input_read_file(const char *path, struct buf *content, bool *regular, cordon_error *err)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return unreadable(errno, path, NULL, err);
    if (S_ISDIR(status.st_mode))
        return unreadable(EISDIR, path, "name a file in it", err);
    if (S_ISREG(status.st_mode) && status.st_size > (off_t)INPUT_BYTES_MAX)
        return too_large(path, err);
    if (regular)
        *regular = S_ISREG(status.st_mode);
    return read_whole(fd, path, content, err);
}

int input_read_stdin(struct buf *content, cordon_error *err)
{
    return read_whole(STDIN_FILENO, "standard input", content, err);
}

const char *input_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int input_split_pair(const char *text, char **name, const char **value, cordon_error *err)
{
    const char *equals = strchr(text, '=');
    /* The text itself is not repeated: it may be a secret. */
    if (!equals || equals == text) {
        error_set(err, CORDON_EINVAL, "usage", equals ? "the name before '=' is empty" : "there is no '=' in it");
        return error_hint(err, "expected NAME=VALUE");
    }
    *name = strndup(text, (size_t)(equals - text));
    if (!*name)
        return error_nomem(err);
    *value = equals + 1;
    return 0;
}

static bool take_suffix(char *text, const char *suffix)
{
    size_t length = strlen(text), cut = strlen(suffix);
    if (length < cut || strcmp(text + length - cut, suffix) != 0)
        return false;
    text[length - cut] = '\0';
    return true;
}

/* No realpath(3): it would follow links, and which directory is meant must not depend on who owns a link. */
static char *absolute_path(const char *path)
{
    if (*path == '/')
        return strdup(path);
    auto_free char *here = getcwd(NULL, 0);
    char *joined = NULL;
    while (!strncmp(path, "./", 2))
        path += 2 + strspn(path + 2, "/");
    if (!here)
        return NULL;
    if (!strcmp(path, ".") || !*path)
        return take_ptr(&here);
    return asprintf(&joined, "%s/%s", strcmp(here, "/") ? here : "", path) < 0 ? NULL : joined;
}

int input_split_mount(const char *text, struct input_mount *mount, cordon_error *err)
{
    auto_free char *source = strdup(text);
    if (!source)
        return error_nomem(err);
    bool writable = take_suffix(source, ":rw");
    if (!writable)
        take_suffix(source, ":ro");
    /* The last colon: a source may hold one, a destination may not. */
    char *colon = strrchr(source, ':');
    if (!colon || colon == source || colon[1] != '/') {
        error_set(err, CORDON_EINVAL, "usage", "'%s' is not a mount: %s", text,
                  !colon            ? "there is no ':' in it"
                  : colon == source ? "the source is empty"
                                    : "what follows the last ':' is neither rw, ro nor an absolute destination");
        return error_hint(err, "expected SRC:DST, read-only, or SRC:DST:rw");
    }
    *colon = '\0';
    auto_free char *absolute = absolute_path(source);
    auto_free char *destination = strdup(colon + 1);
    if (!absolute || !destination)
        return error_nomem(err);
    *mount = (struct input_mount){take_ptr(&absolute), take_ptr(&destination), writable};
    return 0;
}

void input_mount_free(struct input_mount *mount)
{
    free(mount->source);
    free(mount->destination);
}

int input_language_of(cordon_engine *engine, const char *path, char **id, cordon_error *err)
{
    const char *name = input_base_name(path);
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || !dot[1]) {
        error_set(err, CORDON_EINVAL, "usage", "cannot tell the language of '%s': its name has no extension", name);
        return error_hint(err, "name the language with -l; 'cordon languages' lists them");
    }
    const char *found;
    if (cordon_language_of_file(engine, name, &found, NULL) == 0) {
        *id = strdup(found);
        return *id ? 0 : error_nomem(err);
    }
    error_set(err, CORDON_ENOTFOUND, "usage", "cannot tell the language of '%s': no language has the extension '%s'",
              name, dot);
    return error_hint(err, "name the language with -l; 'cordon languages' lists them");
}

void input_prebuild(cordon_engine *engine, const char *language, bool quiet, int (*go_on)(void *context))
{
    if (cordon_engine_prebuild(engine, language, 1, NULL, NULL, NULL) <= 0)
        return;
    if (!quiet && isatty(STDERR_FILENO))
        terminal_say("making what programs in %s are compiled with; it is kept for later runs", language);
    cordon_engine_prebuild(engine, language, 0, go_on, NULL, NULL);
}
