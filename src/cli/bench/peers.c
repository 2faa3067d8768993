/* The other runners: how each is told to run a program as isolated as it can, as near to a cell as its options come.
 * One row is one runner. Called by the lanes and by cmd_bench(). */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/policy.h"
#include "cli/bench/bench.h"
#include "cli/report.h"

#define PLACE_SIZE      256
#define SYSTEM_PATH     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define INSIDE          "/code"
#define MEMORY_LIMIT    536870912
#define PROCESSES_LIMIT 100

/* A file tree as in a cell, in the words of bubblewrap and nsjail. */
#define BWRAP_TREE                                                                                                     \
    "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib "                      \
    "--symlink usr/lib64 /lib64 --ro-bind-try /etc/alternatives /etc/alternatives "                                    \
    "--ro-bind-try /etc/ld.so.cache /etc/ld.so.cache --tmpfs /tmp --tmpfs /work --proc /proc --dev /dev "              \
    "--ro-bind {code} " INSIDE " --chdir /work"
#define NSJAIL_TREE                                                                                                    \
    "--bindmount_ro /usr --symlink usr/bin:/bin --symlink usr/sbin:/sbin --symlink usr/lib:/lib "                      \
    "--symlink usr/lib64:/lib64 --bindmount_ro /etc/alternatives --bindmount_ro /etc/ld.so.cache "                     \
    "--tmpfsmount /tmp --tmpfsmount /work --bindmount /dev/null --bindmount /dev/urandom "                             \
    "--bindmount_ro {code}:" INSIDE " --cwd /work"

const struct peer_row bench_peers[] = {
    {.name = "plain subprocess",
     .note = "no isolation at all: what the program itself costs",
     .share = 100,
     .outside = true,
     .words = "{command}"},
    {.name = "bubblewrap",
     .program = "bwrap",
     .note = "the cell's namespaces and its system call filter; no limits on memory, processes or CPU",
     .share = 100,
     .filtered = true,
     .words = "--unshare-all --die-with-parent --new-session --uid 1000 --gid 1000 --hostname cordon --cap-drop "
              "ALL " BWRAP_TREE " --seccomp " BENCH_FILTER_TEXT " -- {command}"},
    {.name = "runc",
     .program = "runc",
     .note = "the cell's namespaces but the user's, limits on memory and processes, no system call filter",
     .share = 100,
     .superuser = true,
     .words = "run --bundle {bundle} {id}"},
    {.name = "crun",
     .program = "crun",
     .note = "as runc",
     .share = 100,
     .superuser = true,
     .words = "run --bundle {bundle} {id}"},
    {.name = "firejail",
     .program = "firejail",
     .note = "no user namespace; its own system call filter; most of the host's files stay visible; no limits",
     .share = 100,
     .outside = true,
     .words = "--quiet --noprofile --net=none --private --private-dev --caps.drop=all --seccomp --nonewprivs -- "
              "{command}"},
    {.name = "nsjail",
     .program = "nsjail",
     .note = "the cell's namespaces, no system call filter, no limits",
     .share = 100,
     .words = "-Mo --really_quiet --keep_env --disable_rlimits --user 1000 --group 1000 --hostname cordon " NSJAIL_TREE
              " -- {command}"},
    {.name = "podman",
     .program = "podman",
     .note = "a container on runc without image or network, limits on memory and processes, its own filter",
     .share = 20,
     .own_environment = true,
     .words = "--runtime runc --cgroup-manager cgroupfs run --rm --network none --read-only --log-driver passthrough "
              "--security-opt no-new-privileges --cap-drop all --user 1000:1000 --memory 512m --pids-limit 100 "
              "--ulimit nofile=1024:1024 --ulimit nproc=1000:1000 {environment} --volume /usr:/usr:ro "
              "--volume /etc/alternatives:/etc/alternatives:ro --volume {code}:" INSIDE ":ro --tmpfs /work "
              "--workdir /work --rootfs {root} {command}"},
};
const size_t bench_peer_count = ARRAY_LEN(bench_peers);

char *peer_program(const struct peer_row *peer)
{
    char found[PLACE_SIZE];
    if (!peer->program)
        return strdup("");
    if (peer->superuser && geteuid() != 0)
        return NULL;
    return find_executable(peer->program, SYSTEM_PATH, found, sizeof found) ? strdup(found) : NULL;
}

bool peer_version(const struct peer_row *peer, const char *program, char *version, size_t size)
{
    struct sample sample;
    if (!peer->program)
        return false;
    struct process process = {.argv = (const char *const[]){program, "--version", NULL},
                              .environment = (const char *const *)environ,
                              .said = version,
                              .said_size = size};
    process_run(&process, &sample);
    version[strcspn(version, "\n")] = '\0';
    return sample.ok && *version;
}

/* The words of one command line, with their bytes. */
struct command_line {
    const char *argv[BENCH_ARGUMENTS_MAX + 1];
    size_t count;
    char text[4096];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add_word(struct command_line *line, const char *format, ...)
{
    va_list args;
    size_t room = sizeof line->text - line->used;
    va_start(args, format);
    int length = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room || line->count == BENCH_ARGUMENTS_MAX)
        return;
    line->argv[line->count++] = line->text + line->used;
    line->used += (size_t)length + 1;
}

static void add_command(struct command_line *line, const struct lane *lane, bool outside)
{
    const struct workload *workload = lane->workload;
    if (*lane->scratch->interpreter)
        add_word(line, "%s", lane->scratch->interpreter);
    if (outside)
        add_word(line, "%s/code/%s/%s", lane->scratch->path, workload->name, workload->file);
    else
        add_word(line, INSIDE "/%s", workload->file);
}

static void add_environment(struct command_line *line)
{
    for (const char *const *each = bench_environment; *each; each++) {
        add_word(line, "--env");
        add_word(line, "%s", *each);
    }
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !memcmp(word, name, length);
}

static void add_expanded(struct command_line *line, const struct lane *lane, const char *word, size_t length)
{
    static atomic_uint last_id;
    const char *scratch = lane->scratch->path, *workload = lane->workload->name;
    if (is_word(word, length, "{command}"))
        add_command(line, lane, lane->contestant->peer->outside);
    else if (is_word(word, length, "{environment}"))
        add_environment(line);
    else if (is_word(word, length, "{root}"))
        add_word(line, "%s/root", scratch);
    else if (is_word(word, length, "{bundle}"))
        add_word(line, "%s/bundle/%s", scratch, workload);
    else if (is_word(word, length, "{id}"))
        add_word(line, "cordon-bench-%d-%u", (int)getpid(), atomic_fetch_add(&last_id, 1));
    else if (length >= 6 && !memcmp(word, "{code}", 6))
        add_word(line, "%s/code/%s%.*s", scratch, workload, (int)length - 6, word + 6);
    else
        add_word(line, "%.*s", (int)length, word);
}

void peer_run(const struct lane *lane, struct sample *sample)
{
    const struct peer_row *peer = lane->contestant->peer;
    struct command_line line;
    char filter[PLACE_SIZE], directory[PLACE_SIZE];
    line.count = line.used = 0;
    if (peer->program)
        add_word(&line, "%s", lane->contestant->program);
    for (const char *word = peer->words; *word;) {
        size_t length = strcspn(word, " ");
        add_expanded(&line, lane, word, length);
        word += length + strspn(word + length, " ");
    }
    line.argv[line.count] = NULL;
    snprintf(filter, sizeof filter, "%s/filter.bpf", lane->scratch->path);
    snprintf(directory, sizeof directory, "%s/work", lane->scratch->path);
    struct process process = {.argv = line.argv,
                              .environment = peer->own_environment ? (const char *const *)environ : bench_environment,
                              .directory = directory,
                              .filter_path = peer->filtered ? filter : NULL,
                              .output = lane->workload->output};
    process_run(&process, sample);
}

static int write_file(const char *path, const void *bytes, size_t length)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : fd_write_all(fd, bytes, length);
}

static int make_root(const struct scratch *scratch)
{
    static const char *const directories[] = {"usr", "proc", "dev", "tmp", "work", "code", "etc", "etc/alternatives"};
    static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
    char path[PLACE_SIZE], target[16];
    for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
        snprintf(path, sizeof path, "%s/root/%s", scratch->path, directories[i]);
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        snprintf(path, sizeof path, "%s/root/%s", scratch->path, links[i]);
        snprintf(target, sizeof target, "usr/%s", links[i]);
        if (symlink(target, path) < 0 && errno != EEXIST)
            return -1;
    }
    snprintf(path, sizeof path, "%s/root/etc/ld.so.cache", scratch->path);
    return write_file(path, "", 0);
}

static json_t *bind_mount(const char *source, const char *destination)
{
    return json_pack("{s:s, s:s, s:s, s:[s, s]}", "destination", destination, "type", "bind", "source", source,
                     "options", "rbind", "ro");
}

static json_t *fresh_mount(const char *type, const char *destination)
{
    return json_pack("{s:s, s:s, s:s}", "destination", destination, "type", type, "source", type);
}

/* What runc and crun are to do: the program with the cell's mounts and the limits of the standard profile. */
static json_t *bundle_config(const struct lane *lane)
{
    char root[PLACE_SIZE], code[PLACE_SIZE];
    struct command_line command;
    json_t *words = json_array(), *variables = json_array();
    snprintf(root, sizeof root, "%s/root", lane->scratch->path);
    snprintf(code, sizeof code, "%s/code/%s", lane->scratch->path, lane->workload->name);
    command.count = command.used = 0;
    add_command(&command, lane, false);
    for (size_t i = 0; i < command.count; i++)
        json_array_append_new(words, json_string(command.argv[i]));
    for (const char *const *each = bench_environment; *each; each++)
        json_array_append_new(variables, json_string(*each));
    json_t *mounts =
        json_pack("[o, o, o, o, o, o, o, o]", fresh_mount("proc", "/proc"), bind_mount("/usr", "/usr"),
                  bind_mount("/etc/alternatives", "/etc/alternatives"),
                  bind_mount("/etc/ld.so.cache", "/etc/ld.so.cache"), bind_mount(code, INSIDE),
                  fresh_mount("tmpfs", "/dev"), fresh_mount("tmpfs", "/tmp"), fresh_mount("tmpfs", "/work"));
    return json_pack("{s:s, s:{s:s, s:b}, s:s, s:{s:b, s:s, s:o, s:o, s:{s:i, s:i}, s:b}, s:o,"
                     " s:{s:[{s:s}, {s:s}, {s:s}, {s:s}, {s:s}], s:{s:{s:I}, s:{s:i}}}}",
                     "ociVersion", "1.0.2", "root", "path", root, "readonly", 1, "hostname", "cordon", "process",
                     "terminal", 0, "cwd", "/work", "args", words, "env", variables, "user", "uid", 1000, "gid", 1000,
                     "noNewPrivileges", 1, "mounts", mounts, "linux", "namespaces", "type", "pid", "type", "mount",
                     "type", "network", "type", "ipc", "type", "uts", "resources", "memory", "limit",
                     (json_int_t)MEMORY_LIMIT, "pids", "limit", PROCESSES_LIMIT);
}

static int write_bundle(const struct scratch *scratch, const struct workload *workload)
{
    const struct lane lane = {.workload = workload, .scratch = scratch};
    char path[PLACE_SIZE];
    snprintf(path, sizeof path, "%s/bundle/%s", scratch->path, workload->name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return -1;
    snprintf(path, sizeof path, "%s/bundle/%s/config.json", scratch->path, workload->name);
    auto_json json_t *config = bundle_config(&lane);
    return config ? json_dump_file(config, path, JSON_INDENT(1)) : -1;
}

int peers_prepare(const struct scratch *scratch, const struct workload *workload)
{
    char path[PLACE_SIZE];
    snprintf(path, sizeof path, "%s/filter.bpf", scratch->path);
    const struct policy_filter *filter = &policy_filters[0];
    if (write_file(path, filter->code, filter->length * sizeof filter->code[0]) < 0)
        return -1;
    return make_root(scratch) < 0 ? -1 : write_bundle(scratch, workload);
}
