/* Whose ids a cell has. The superuser's warden gives each living cell two host ids of its own, derived from the number
 * of its user namespace, which no other living namespace on the machine has, whatever pid namespaces their wardens are
 * in; an ordinary user's cells all map to that user. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cell/mutant.h"
#include "cell/sys.h"
#include "warden/warden.h"

/* High enough to be nobody's; what follows stays below 2^31, for some programs take ids for signed. */
#define HOST_ID_BASE 0x70000000U
/* The kernel numbers namespaces upwards from here, and uses the number of a dead one again. */
#define NAMESPACE_FIRST 0xF0000000U
#define NAMESPACES_MAX  (1U << 27) /* two ids for each */
/* Where a container has but 16 bits of ids: beyond those that cells get. */
#define FEW_IDS_OWNER 60001U

static bool has_capability(unsigned which)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return data[0].effective & (1U << which);
}

bool identity_may_administer(void)
{
    return has_capability(CAP_SYS_ADMIN);
}

bool identity_may_raise_limits(void)
{
    static int may = -1; /* the warden gains and loses none */
    if (may < 0)
        may = has_capability(CAP_SYS_RESOURCE);
    return may;
}

/* The kernel takes a score for a floor when CAP_SYS_RESOURCE of the first user namespace wrote it; that namespace has
 * the same inode on every kernel. */
bool identity_sets_oom_floor(void)
{
    const ino_t first_user_namespace = 0xEFFFFFFD;
    static int sets = -1;
    struct stat st;
    if (sets < 0)
        sets = identity_may_raise_limits() && stat("/proc/self/ns/user", &st) == 0 && st.st_ino == first_user_namespace;
    return sets;
}

static int write_map(pid_t pid, const char *file, const char *text)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return fd_write_text_at(AT_FDCWD, path, text);
}

/* Whether this process's user namespace knows the id at all: inside a container only few may exist. */
static bool id_exists(unsigned id)
{
    static char text[1024]; /* does not change */
    if (!*text && fd_read_text_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) <= 0)
        return false;
    for (const char *line = text; line; line = cgroup_next_line(line)) {
        unsigned inside, outside, count;
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && id >= inside && id - inside < count)
            return true;
    }
    return false;
}

bool identity_has_ids(void)
{
    return id_exists(HOST_ID_BASE) || id_exists(60001);
}

/* The first of the two ids that belong to a user namespace; 0 when its number is beyond what there are ids for. */
static unsigned id_of(uint64_t user_namespace)
{
    if (user_namespace < NAMESPACE_FIRST || user_namespace - NAMESPACE_FIRST >= NAMESPACES_MAX)
        return 0;
    return HOST_ID_BASE + 2 * (unsigned)(user_namespace - NAMESPACE_FIRST);
}

uint64_t identity_user_namespace(int proc, pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "%d/ns/user", pid);
    return fstatat(proc, path, &st, 0) == 0 ? st.st_ino : 0;
}

/* A user namespace without a process; the maps may be NULL. Its descriptor, or -1. */
static int hold_user_namespace(const char *uid_map, const char *gid_map)
{
    int hold[2];
    if (pipe2(hold, O_CLOEXEC) < 0)
        return -1;
    auto_close int read_end = hold[0], write_end = hold[1];
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = 0};
    pid_t pid = sys_clone3(&args, sizeof args);
    if (pid < 0)
        return -1;
    if (pid == 0) {
        char byte;
        close(write_end);
        (void)!read(read_end, &byte, 1);
        _exit(0);
    }
    char path[48];
    int fd = -1;
    if ((!uid_map || write_map(pid, "uid_map", uid_map) == 0) &&
        (!gid_map || write_map(pid, "gid_map", gid_map) == 0)) {
        snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    int saved = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, __WALL);
    errno = saved;
    return fd;
}

/* The owner's id is that of a namespace which the warden holds for as long as it lives, and nobody is in. */
void identity_claim_owner(struct warden *warden)
{
    static int held = -1;
    struct stat st;
    if (warden->slot_owner || warden->rootless)
        return;
    held = hold_user_namespace(NULL, NULL);
    unsigned owner = held >= 0 && fstat(held, &st) == 0 ? id_of(st.st_ino) : 0;
    warden->slot_owner = owner && id_exists(owner) ? owner : FEW_IDS_OWNER;
}

uid_t identity_slot_owner(const struct warden *warden)
{
    return warden->rootless ? 0 : warden->slot_owner;
}

/* Counters of the network's protocols, which a refused connection leaves behind; as one number. */
static bool sum_counters(const struct warden *warden, uint64_t *sum)
{
    static const char *const files[] = {"self/net/snmp", "self/net/netstat", "self/net/snmp6"};
    static char text[16384]; /* large, and used by one thread or its helper */
    *sum = UINT64_C(0xcbf29ce484222325);
    for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
        ssize_t length = fd_read_text_at(warden->proc, files[i], text, sizeof text);
        if (length < 0 && errno == ENOENT) /* no IPv6 */
            continue;
        if (length < 0)
            return false;
        for (ssize_t n = 0; n < length; n++)
            *sum = (*sum ^ (unsigned char)text[n]) * UINT64_C(0x100000001b3);
    }
    return true;
}

/* Reads what tells whether a network namespace was used: sockets, packets through its loopback, protocol counters. */
static bool read_network(const struct warden *warden, char *text, size_t size)
{
    char sockets[1024], devices[1024], labels[256];
    uint64_t counters;
    if (fd_read_text_at(warden->proc, "self/net/sockstat", sockets, sizeof sockets) <= 0 ||
        fd_read_text_at(warden->proc, "self/net/dev", devices, sizeof devices) <= 0 || !sum_counters(warden, &counters))
        return false;
    if (fd_read_text_at(warden->proc, "self/net/ip6_flowlabel", labels, sizeof labels) < 0)
        *labels = '\0';
    const char *loopback = strstr(devices, "lo:"), *tcp = strstr(sockets, "TCP: inuse"),
               *waiting = strstr(sockets, " tw ");
    int used = -1, inuse = -1, tw = -1; /* the other numbers there are the whole machine's */
    if (!loopback || !tcp || !waiting || sscanf(sockets, "sockets: used %d", &used) != 1 ||
        sscanf(tcp, "TCP: inuse %d", &inuse) != 1 || sscanf(waiting, " tw %d", &tw) != 1)
        return false;
    int length = snprintf(text, size, "%d %d %d %zu %" PRIx64 " %.*s", used, inuse, tw, strlen(labels), counters,
                          (int)strcspn(loopback, "\n"), loopback);
    return length > 0 && (size_t)length < size;
}

bool identity_is_clean(const struct warden *warden, const struct identity *identity)
{
    char now[sizeof identity->network_before];
    return identity->unused || (read_network(warden, now, sizeof now) && !strcmp(now, identity->network_before));
}

struct identity *identity_take(struct warden *warden)
{
    struct identity *unmade = NULL;
    /* Where ids are few, or given by pid alone, nothing is kept. */
    if (!warden->rootless && identity_slot_owner(warden) == FEW_IDS_OWNER)
        return NULL;
    for (unsigned i = 0; i < IDENTITY_MAX; i++) {
        struct identity *identity = &warden->identities[i];
        if (identity->state == IDENTITY_FREE) {
            identity->state = IDENTITY_BUSY;
            return identity;
        }
        if (identity->state == IDENTITY_UNMADE && !unmade)
            unmade = identity;
    }
    if (unmade)
        *unmade = (struct identity){.state = IDENTITY_BUSY, .spaces = {-1, -1, -1, -1}};
    return unmade;
}

struct note_context {
    const struct warden *warden;
    struct identity *identity;
};

static int note_network(void *context)
{
    const struct note_context *at = context;
    char *text = at->identity->network_before;
    if (setns(at->identity->spaces[SLOT_NET], CLONE_NEWNET) < 0 ||
        !read_network(at->warden, text, sizeof at->identity->network_before))
        *text = '\0';
    return 0;
}

void identity_made(struct warden *warden, struct identity *identity, int spaces[SLOT_IDENTITY])
{
    for (int i = 0; i < SLOT_IDENTITY; i++)
        identity->spaces[i] = take_fd(&spaces[i]);
    *identity->network_before = '\0'; /* never equal: used once */
    struct note_context context = {warden, identity};
    spawn_helper(note_network, &context);
}

bool identity_stands(const struct identity *identity)
{
    return identity->spaces[SLOT_USER] >= 0;
}

void identity_discard(struct identity *identity)
{
    for (int i = 0; i < SLOT_IDENTITY && identity->state != IDENTITY_UNMADE; i++)
        cleanup_close(&identity->spaces[i]);
    *identity = (struct identity){.state = IDENTITY_UNMADE, .spaces = {-1, -1, -1, -1}};
}

/* The program's filter tells of each socket, and of what may make an IPC object, before it is made: as long as it had a
 * listener. Of objects nothing else would tell; the host name cannot be changed by who has no rights. */
void identity_release(struct identity *identity, const struct cell *cell)
{
    bool told = cell->controls & CONTROL_BIT(CONTROL_DENIAL_REPORTS);
    identity->unused = told && !cell->used_network;
    if (!told || cell->used_ipc || !identity_stands(identity) || !*identity->network_before)
        identity_discard(identity);
    else
        identity->state = IDENTITY_FREE;
}

void identity_close_all(struct warden *warden)
{
    for (unsigned i = 0; i < IDENTITY_MAX; i++)
        identity_discard(&warden->identities[i]);
}

unsigned identity_ids(struct warden *warden, struct cell *cell)
{
    if (warden->rootless) {
        cell->uid = warden->uid;
        return 0;
    }
    if (cell->identity && !cell->identity->user_namespace)
        cell->identity->user_namespace = cell->user_namespace;
    unsigned id = id_of(cell->identity ? cell->identity->user_namespace : cell->user_namespace);
    if (id && id_exists(id + 1))
        cell->controls |= CONTROL_BIT(CONTROL_OWN_UID);
    else /* a container with a 16-bit range of ids: still not the host's root */
        id = 20000 + 2 * ((unsigned)cell->init_pid % 20000);
    if (MUTANT(OWN_UID))
        id = HOST_ID_BASE;
    cell->uid = MUTANT(USERNS) ? 0 : id + 1; /* as if ids were only renamed: the host's root under another name */
    return id;
}

int identity_write_maps(struct warden *warden, struct cell *cell)
{
    char map[96];
    unsigned id = identity_ids(warden, cell);
    if (warden->rootless) {
        snprintf(map, sizeof map, "%d 0 1\n", CELL_UID);
        if (write_map(cell->init_pid, "setgroups", "deny") < 0)
            return -1;
    } else {
        snprintf(map, sizeof map, "0 %u 1\n%d %u 1\n", id, CELL_UID, cell->uid);
    }
    if (!(cell->namespaces & CLONE_NEWUSER))
        return 0;
    return write_map(cell->init_pid, "uid_map", map) < 0 || write_map(cell->init_pid, "gid_map", map) < 0 ? -1 : 0;
}

/* An ordinary user, or a superuser without CAP_SYS_ADMIN, becomes root of a namespace that holds that one id. */
int identity_enter_own_userns(uid_t uid, gid_t gid)
{
    char map[48];
    if (unshare(CLONE_NEWUSER) < 0)
        return -1;
    if (fd_write_text_at(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1\n", uid);
    if (fd_write_text_at(AT_FDCWD, "/proc/self/uid_map", map) < 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1\n", gid);
    return fd_write_text_at(AT_FDCWD, "/proc/self/gid_map", map);
}

int identity_mount_userns(struct warden *warden, const struct cell *cell)
{
    char uid_map[48], gid_map[48];
    snprintf(uid_map, sizeof uid_map, "%u %u 1\n", warden->uid, cell->uid);
    snprintf(gid_map, sizeof gid_map, "%u %u 1\n", warden->gid, cell->uid);
    return hold_user_namespace(uid_map, gid_map);
}
