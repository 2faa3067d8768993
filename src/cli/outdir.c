/* Owns putting collected files on the host. Names and content come from hostile code: every component is opened by
 * itself beneath the directory's descriptor, no link is ever followed, and nothing is made executable. Called by the
 * run command. */
#include "cli/outdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/report.h"

int outdir_open(const char *path, int *fd, cordon_error *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        goto fail;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0)
        return 0;
fail:
    error_set(err, CORDON_EINVAL, "output-dir", "cannot use %s for collected files: %s", path, strerror(errno));
    if (err)
        err->sys_errno = errno;
    return CORDON_EINVAL;
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* In place: the bytes never need more room than their digits. The library made the text; a character that is no digit
 * ends it. */
static size_t base64_decode_in_place(char *text)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t length = 0;
    for (const char *at = text; base64_digit(*at) >= 0; at++) {
        bits = bits << 6 | (uint32_t)base64_digit(*at);
        held += 6;
        if (held >= 8) {
            held -= 8;
            text[length++] = (char)(bits >> held & 0xff);
        }
    }
    return length;
}

static bool component_is_safe(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* A directory beneath `parent`, made if it is missing; -1 with errno. */
static int enter(int parent, const char *name)
{
    if (!component_is_safe(name)) {
        errno = EINVAL;
        return -1;
    }
    if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
        return -1;
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes what is there before it creates: opening it could follow a link, block on a pipe or write through a second
 * name of some other file. */
static int create(int parent, const char *name)
{
    if (!component_is_safe(name)) {
        errno = EINVAL;
        return -1;
    }
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return -1;
    return openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

static int write_file(int root, char *path, const void *bytes, size_t length)
{
    auto_close int parent = fcntl(root, F_DUPFD_CLOEXEC, 3);
    if (parent < 0)
        return -1;
    char *name = path;
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';
        int next = enter(parent, name);
        *slash = '/';
        if (next < 0)
            return -1;
        close(parent);
        parent = next;
    }
    auto_close int file = create(parent, name);
    if (file < 0 || fd_write_all(file, bytes, length) < 0)
        return -1;
    return close(take_fd(&file));
}

static int write_item(int root, const json_t *item)
{
    const char *path = member_text(item, "path");
    const char *path_bytes = member_text(item, "path_base64");
    const char *encoded = member_text(item, "content_base64");
    const json_t *plain = json_object_get(item, "content");
    auto_free char *own_path = path ? strdup(path) : NULL;
    auto_free char *decoded = encoded ? strdup(encoded) : NULL;
    if (!own_path || (encoded && !decoded) || (!encoded && !json_is_string(plain))) {
        errno = path ? ENODATA : EINVAL;
        return -1;
    }
    if (path_bytes) {
        free(own_path);
        own_path = strdup(path_bytes);
        if (!own_path)
            return -1;
        own_path[base64_decode_in_place(own_path)] = '\0';
    }
    if (!decoded)
        return write_file(root, own_path, json_string_value(plain), json_string_length(plain));
    size_t length = base64_decode_in_place(decoded);
    return write_file(root, own_path, decoded, length);
}

int outdir_write(int fd, const json_t *files, cordon_error *err)
{
    size_t index;
    const json_t *item;
    json_array_foreach(files, index, item)
    {
        if (write_item(fd, item) < 0) {
            const char *path = member_text(item, "path");
            return error_sys(err, errno, "output-dir", "cannot write the collected file %s",
                             path ? path : "without a name");
        }
    }
    return 0;
}
