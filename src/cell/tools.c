/* Commands that every cell has, in the first directory of its PATH: names under which people know an interpreter and
 * the host lacks, and package tools that say at once where packages come from. Written into the cell's own tree, before
 * that becomes read-only. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/steps.h"

#define BIN   "etc/cordon/bin"
#define PROXY "package-tool"

static const char *const search_path[] = {"/usr/local/bin/", "/usr/bin/"};

static const struct {
    const char *name, *target;
} aliases[] = {{"python", "python3"}, {"nodejs", "node"}};

/* Links to PROXY. */
static const char *const package_tools[] = {"pip", "pip3", "npm", "npx"};

/* Packages that were sent along can be installed without a network, so the real tool runs where there is one. */
static const char proxy[] =
    "#!/bin/sh\n"
    "# Runs the host's tool of this name; when that fails, says where packages come from.\n"
    "name=${0##*/} tool=\n"
    "for place in /usr/local/bin /usr/bin; do\n"
    "    [ -z \"$tool\" ] && [ -x \"$place/$name\" ] && tool=$place/$name\n"
    "done\n"
    "export npm_config_offline=true npm_config_cache=\"${npm_config_cache:-/tmp/.npm}\"\n"
    "export npm_config_update_notifier=false\n"
    "status=127\n"
    "[ \"$tool\" ] && { \"$tool\" \"$@\"; status=$?; }\n"
    "case $status,$name,$1 in\n"
    "0,*) ;;\n"
    "127,* | *,npx,* | *,*,install | *,*,i | *,*,ci | *,*,add | *,*,download)\n"
    "    echo \"$name: a run has no network: install packages on the host, where every run sees them\" >&2 ;;\n"
    "esac\n"
    "exit $status\n";

/* For `python3 -m pip`, which does not come by the proxy: no waiting for a server that cannot be reached. */
static const char pip_config[] = "[global]\nno-index = true\ndisable-pip-version-check = true\n";

/* The path of a tool of the host; NULL when there is none. */
static const char *find_tool(const char *name, char path[64])
{
    struct stat st;
    for (unsigned i = 0; i < ARRAY_LEN(search_path); i++) {
        size_t length = strlen(search_path[i]);
        memcpy(path, search_path[i], length);
        memcpy(path + length, name, strlen(name) + 1);
        if (stat(path, &st) == 0)
            return path;
    }
    return NULL;
}

static int make_aliases(int bin)
{
    char path[64];
    for (unsigned i = 0; i < ARRAY_LEN(aliases); i++) {
        const char *target = find_tool(aliases[i].name, path) ? NULL : find_tool(aliases[i].target, path);
        if (target && symlinkat(target, bin, aliases[i].name) < 0)
            return -1;
    }
    return 0;
}

static int make_proxies(int bin)
{
    auto_close int fd = openat(bin, PROXY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0 || fd_write_all(fd, proxy, sizeof proxy - 1) < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(package_tools); i++)
        if (symlinkat(PROXY, bin, package_tools[i]) < 0)
            return -1;
    return 0;
}

int tools_show(int root_fd)
{
    if (mkdirat(root_fd, "etc/cordon", 0755) < 0 || mkdirat(root_fd, BIN, 0755) < 0 ||
        files_make(root_fd, "etc/pip.conf", pip_config) < 0)
        return -1;
    auto_close int bin = openat(root_fd, BIN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return bin < 0 || make_aliases(bin) < 0 || make_proxies(bin) < 0 ? -1 : 0;
}
