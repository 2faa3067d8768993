/* Owns the rule for paths that come from a request. Must stay pure: it is linked into the library and into the static
 * warden, and both must give the same answer. */
#include "plan/path.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* Places whose content is part of the boundary or of the environment; a mount there could replace what the cell's own
 * controls rely on. The short names are links into /usr, so a mount beneath one would land there. */
static const struct {
    const char *path;
    bool beneath; /* false: only the directory itself is reserved */
    const char *problem;
} reserved[] = {
    {"/proc", true, "lies in /proc, which belongs to the cell"},
    {"/dev", true, "lies in /dev, which belongs to the cell"},
    {"/sys", true, "lies in /sys, which belongs to the cell"},
    {"/etc", true, "lies in /etc, which belongs to the environment"},
    {"/usr", true, "lies in /usr, which belongs to the environment"},
    {"/bin", true, "lies in /bin, which belongs to the environment"},
    {"/sbin", true, "lies in /sbin, which belongs to the environment"},
    {"/lib", true, "lies in /lib, which belongs to the environment"},
    {"/lib32", true, "lies in /lib32, which belongs to the environment"},
    {"/lib64", true, "lies in /lib64, which belongs to the environment"},
    {"/libx32", true, "lies in /libx32, which belongs to the environment"},
    {"/work", false, "would hide the work directory; mount beneath it, such as /work/data"},
    {"/tmp", false, "would hide the temporary directory; mount beneath it, such as /tmp/data"},
};

bool request_path_is_safe(const char *path)
{
    if (strnlen(path, PATH_LENGTH_MAX + 1) > PATH_LENGTH_MAX)
        return false;
    for (;;) {
        size_t length = strcspn(path, "/");
        bool dots = (length == 1 && path[0] == '.') || (length == 2 && path[0] == '.' && path[1] == '.');
        if (length == 0 || length > PATH_COMPONENT_MAX || dots)
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}

const char *mount_destination_problem(const char *destination)
{
    if (destination[0] != '/')
        return "is not an absolute path";
    if (destination[1] == '\0')
        return "is the root of the cell";
    if (!request_path_is_safe(destination + 1))
        return "is not a clean path (no empty, '.' or '..' component, at most 255 bytes each and 1024 in all)";
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
        size_t length = strlen(reserved[i].path);
        if (strncmp(destination, reserved[i].path, length) != 0)
            continue;
        if (destination[length] == '\0' || (destination[length] == '/' && reserved[i].beneath))
            return reserved[i].problem;
    }
    return NULL;
}
