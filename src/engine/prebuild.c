/* Owns the directories that cordon_engine_prebuild() makes: beneath that of the compiled programs, one for each key,
 * which appears by rename and is never changed. It holds `tree`, which cells see, and `index`, which tells what must be
 * in there. Whatever is not as it was put there is not used; then programs are compiled without it. */
#include "engine/prebuild.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "engine/cache_place.h"
#include "engine/compile_cache.h"
#include "engine/compile_key.h"
#include "engine/exchange.h"
#include "output/collect.h"
#include "plan/path.h"

#define FOLDER         "prebuilt"
#define TEMPORARY      ".new-"
#define NOTE           ".note-"
#define HIDDEN_AGE     86400 /* seconds after which nobody is writing it any more */
#define FAILED_AGE     600   /* seconds for which a failure is not tried again */
#define FILE_MODE      0444
#define DIRECTORY_MODE 0755
#define KEPT_MAX       4 /* of all languages and versions */
#define INDEX_MAX      (1 << 20)
#define TREE_DEPTH     (COLLECT_DEPTH_MAX + 4)
#define NAME_SIZE      (2 * SHA256_BYTES + 1)

/* The cell that makes it. Our own program, so it gets what the machine has, within reason. */
struct making {
    struct limits limits;
    struct command command, version;
    struct plan_file file;
    const char *source; /* the manifest's */
    char **etc;
    struct plan_source plan;
    char name[NAME_SIZE];
    int (*go_on)(void *context);
    void *context;
};

static void making_free(struct making *making)
{
    command_free(&making->command);
    command_free(&making->version);
    free(making->etc);
}

#define auto_making __attribute__((cleanup(making_free)))

static int set_limits(struct limits *limits, cordon_error *err)
{
    *limits = (struct limits){0};
    limits->value[LIMIT_WALL_MS] = 600000;
    limits->value[LIMIT_CPU_MS] = 1200000;
    limits->value[LIMIT_CPUS] = 4000;
    limits->value[LIMIT_MEMORY_BYTES] = INT64_C(2) << 30;
    limits->value[LIMIT_DISK_BYTES] = INT64_C(1) << 30;
    return limits_complete(limits, "heavy", err);
}

/* The same things count as for a program that is compiled, but nobody's tenant does: it is nobody's program. */
static int name_it(const struct cordon_engine *engine, const struct manifest *manifest, struct making *making)
{
    const char *tools[] = {environment_find(making->command.candidates), environment_find(making->version.candidates),
                           NULL};
    const char *outputs[] = {manifest->prebuild->from};
    struct compile_key key;
    struct compile_key_input input = {.language = manifest->id,
                                      .environment = "host",
                                      .plan = &making->plan,
                                      .outputs = outputs,
                                      .outputs_count = 1,
                                      .tools = tools,
                                      .markers = compile_key_markers};
    if (!engine->compiled || !tools[0] || !tools[1] || compile_key_make(&input, &key) < 0)
        return -1;
    sha256_text(key.bytes, making->name);
    return 0;
}

static int prepare_making(const struct cordon_engine *engine, const struct manifest *manifest, struct making *making,
                          cordon_error *err)
{
    const struct manifest_prebuild *prebuild = manifest->prebuild;
    const struct manifest_step fill = {.argv = prebuild->argv,
                                       .argv_count = prebuild->argv_count,
                                       .env = prebuild->env,
                                       .env_count = prebuild->env_count};
    const struct manifest_step version = {.argv = manifest->version, .argv_count = manifest->version_count};
    struct command_input input = {.entry = manifest->file, .limits = &making->limits};
    size_t length = 0;
    int code = set_limits(&making->limits, err);
    if (code == 0)
        code = command_build(&fill, &input, &making->command, err);
    if (code == 0)
        code = command_build(&version, &input, &making->version, err);
    if (code == 0)
        code = manifest_prebuild_source(manifest, &making->source, &length, err);
    if (code < 0)
        return code;
    making->etc = calloc(manifest->etc_count + 1, sizeof *making->etc);
    if (!making->etc)
        return error_nomem(err);
    memcpy(making->etc, manifest->etc, manifest->etc_count * sizeof *making->etc);
    making->file =
        (struct plan_file){.path = manifest->file, .content = making->source, .length = length, .mode = 0644};
    making->plan = (struct plan_source){.limits = &making->limits,
                                        .optional = CONTROL_BIT(CONTROL_CGROUP),
                                        .argv = making->command.argv,
                                        .envp = making->command.envp,
                                        .candidates = making->command.candidates,
                                        .etc = making->etc,
                                        .files = &making->file,
                                        .file_count = 1};
    if (name_it(engine, manifest, making) == 0)
        return 0;
    return engine->compiled ? error_set(err, CORDON_ENOTFOUND, "prebuild", "%s is not installed", manifest->name)
                            : error_set(err, CORDON_ESTATE, "prebuild", "this engine keeps nothing it compiles");
}

static int open_folder(const struct cordon_engine *engine)
{
    auto_close int compiled = compile_cache_open(engine->compiled);
    return compiled < 0 ? -1 : cache_place_open_at(compiled, FOLDER);
}

/* A line of the index: size, time of change, path. Cells see it as others of the host would. */
static bool is_as_listed(int tree, const char *line)
{
    unsigned long long size;
    long long seconds;
    int at = 0;
    struct stat st;
    if (sscanf(line, "%llu %lld %n", &size, &seconds, &at) != 2 || !at)
        return false;
    auto_close int fd = fd_open_beneath(tree, line + at, O_PATH);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && cache_place_is_own(&st) &&
           (st.st_mode & 0777) == FILE_MODE && (unsigned long long)st.st_size == size && st.st_mtim.tv_sec == seconds;
}

static bool is_whole(int made, int tree)
{
    auto_free char *index = malloc(INDEX_MAX);
    auto_close int fd = fd_open_beneath(made, "index", O_RDONLY);
    ssize_t length = index && fd >= 0 ? fd_read_all(fd, index, INDEX_MAX - 1) : -1;
    if (length <= 0 || index[length - 1] != '\n')
        return false;
    index[length] = '\0';
    if (strlen(index) != (size_t)length)
        return false;
    for (char *line = index, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        if (!is_as_listed(tree, line))
            return false;
    }
    return true;
}

static int open_made(int folder, const char *name)
{
    struct stat st;
    auto_close int made = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
    if (made < 0 || fstat(made, &st) < 0 || !cache_place_is_own(&st))
        return -1;
    auto_close int tree = fd_open_beneath(made, "tree", O_PATH | O_DIRECTORY);
    if (tree < 0 || fstat(tree, &st) < 0 || !cache_place_is_own(&st) || (st.st_mode & 0777) != DIRECTORY_MODE ||
        !is_whole(made, tree))
        return -1;
    /* The time of its last use, by which the oldest are removed. */
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    futimens(made, times);
    return take_fd(&tree);
}

int prebuild_open(const struct cordon_engine *engine, const struct manifest *manifest)
{
    auto_making struct making making = {0};
    if (!manifest->prebuild || !engine->compiled || prepare_making(engine, manifest, &making, NULL) < 0)
        return -1;
    auto_close int folder = open_folder(engine);
    return folder < 0 ? -1 : open_made(folder, making.name);
}

/* Of our own making, and no deeper than it was made. */
static void remove_tree(int parent, const char *name, unsigned depth)
{
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        cleanup_close(&fd);
        return;
    }
    for (const struct dirent *entry; depth && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_tree(dirfd(stream), entry->d_name, depth - 1);
    closedir(stream);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Whatever the caller's umask: in a cell it is somebody else's. */
static int make_directory(int parent, const char *name)
{
    return mkdirat(parent, name, DIRECTORY_MODE) < 0 ? -1 : fchmodat(parent, name, DIRECTORY_MODE, 0);
}

static int make_parents(int tree, const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if ((size_t)snprintf(part, sizeof part, "%.*s", (int)(slash - path), path) >= sizeof part)
            return -1;
        if (make_directory(tree, part) < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int copy_file(int tree, const char *path, const struct collected_file *file, struct buf *index)
{
    char bytes[65536];
    uint64_t copied = 0;
    /* Whole seconds, which every file system keeps. */
    const struct timespec now = {.tv_sec = time(NULL)}, times[2] = {now, now};
    if (make_parents(tree, path) < 0)
        return -1;
    auto_close int fd = openat(tree, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    for (ssize_t n; fd >= 0 && (n = read(file->fd, bytes, sizeof bytes)) != 0; copied += (uint64_t)n)
        if (n < 0 || fd_write_all(fd, bytes, (size_t)n) < 0)
            return -1;
    if (fd < 0 || copied != file->size || fchmod(fd, FILE_MODE) < 0 || futimens(fd, times) < 0)
        return -1;
    buf_printf(index, "%llu %lld %s\n", (unsigned long long)copied, (long long)now.tv_sec, path);
    return index->failed ? -1 : 0;
}

/* One file or directory of what the cell left, with everything in it. */
static int copy_part(int work, const char *from, const char *part, int tree, struct buf *index)
{
    auto_free char *path = NULL, *below = NULL;
    struct collected files = {0};
    if (strpbrk(part, "*?[\\\n") || asprintf(&path, "%s/%s", from, part) < 0 || asprintf(&below, "%s/**", path) < 0)
        return -1;
    int code = collect_files(work, (char *[]){path, below}, 2, &files, NULL);
    code = code < 0 || files.skipped ? -1 : 0;
    for (size_t i = 0; i < files.count && code == 0; i++) {
        const char *name = files.items[i].path + strlen(from) + 1;
        code = request_path_is_safe(name) && !strchr(name, '\n') && index->length < INDEX_MAX / 2
                   ? copy_file(tree, name, &files.items[i], index)
                   : -1;
    }
    collected_free(&files);
    return code;
}

/* A part at a time, for each file of a collection is held open. */
static int copy_tree(int work, const char *from, int tree, struct buf *index)
{
    int fd = fd_open_beneath(work, from, O_RDONLY | O_DIRECTORY);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    int code = stream ? 0 : -1;
    if (!stream)
        cleanup_close(&fd);
    for (const struct dirent *entry; code == 0 && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            code = copy_part(work, from, entry->d_name, tree, index);
    if (stream)
        closedir(stream);
    return code;
}

/* Into a new directory beside the others. */
static int write_tree(int made, int work, const char *from)
{
    auto_buf struct buf index = {0};
    if (make_directory(made, "tree") < 0)
        return -1;
    auto_close int tree = openat(made, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree < 0 || copy_tree(work, from, tree, &index) < 0 || !index.length)
        return -1;
    auto_close int fd = openat(made, "index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    /* All of it is there before it has its name. */
    return fd < 0 || fd_write_all(fd, index.data, index.length) < 0 ? -1 : syncfs(fd);
}

/* Removes what nobody finished, and when there are too many the one, but `newest`, that was not used for longest. */
static void tidy(int folder, const char *newest)
{
    int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    char oldest[NAME_SIZE] = "";
    time_t oldest_used = 0, now = time(NULL);
    unsigned kept = 0;
    struct stat st;
    if (!stream) {
        cleanup_close(&own);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(stream));) {
        const char *name = entry->d_name;
        bool hidden = *name == '.' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
        bool whole = strlen(name) == NAME_SIZE - 1;
        if ((!hidden && !whole) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (hidden && now - st.st_mtim.tv_sec > HIDDEN_AGE)
            remove_tree(folder, name, TREE_DEPTH);
        kept += !hidden;
        if (!hidden && strcmp(name, newest) != 0 && (!*oldest || st.st_mtim.tv_sec < oldest_used)) {
            memcpy(oldest, name, sizeof oldest);
            oldest_used = st.st_mtim.tv_sec;
        }
    }
    closedir(stream);
    if (kept > KEPT_MAX)
        remove_tree(folder, oldest, TREE_DEPTH);
}

static int keep(int folder, const struct making *making, int work, const char *from)
{
    uint64_t random;
    char temporary[32];
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -1;
    snprintf(temporary, sizeof temporary, TEMPORARY "%016llx", (unsigned long long)random);
    if (make_directory(folder, temporary) < 0)
        return -1;
    auto_close int made = openat(folder, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool good = made >= 0 && write_tree(made, work, from) == 0;
    if (good) {
        remove_tree(folder, making->name, TREE_DEPTH); /* one that is not whole any more */
        good = renameat(folder, temporary, folder, making->name) == 0;
    }
    int saved = errno;
    if (!good)
        remove_tree(folder, temporary, TREE_DEPTH);
    tidy(folder, making->name);
    errno = saved;
    return good ? 0 : -1;
}

static int fail_of(const struct manifest *manifest, const struct exchange *exchange, cordon_error *err)
{
    auto_free char *said = capture_text(&exchange->streams[1].capture, &(size_t){0}, NULL);
    error_set(err, CORDON_ESTATE, "prebuild", "%s: the program that prepares its compiler ended with %s",
              manifest->name, cordon_status_name((cordon_status)exchange->ended.status));
    if (said && *said)
        error_hint(err, "it said: %.150s", said);
    return CORDON_ESTATE;
}

static int make(struct cordon_engine *engine, const struct manifest *manifest, const struct making *making, int folder,
                cordon_error *err)
{
    struct exchange_input input = {.plan = &making->plan,
                                   .output_cap = 8192,
                                   .stdin_fd = -1,
                                   .files_read = true,
                                   .go_on = making->go_on,
                                   .go_on_context = making->context};
    struct exchange exchange;
    int code = exchange_run(&exchange, engine, &input, err);
    if (code < 0)
        return code;
    if (exchange.ended.status != CORDON_STATUS_OK)
        code = fail_of(manifest, &exchange, err);
    else if (keep(folder, making, exchange.work_fd, manifest->prebuild->from) < 0)
        code = error_sys(err, errno, "prebuild", "cannot keep what the compiler of %s needs", manifest->name);
    exchange_close(&exchange);
    return code;
}

/* Beside what is made lies a file that is locked while it is made, and has a length when that failed. */
struct note {
    char name[NAME_SIZE + sizeof NOTE];
    bool failed_lately;
};

static void read_note(int folder, const struct making *making, struct note *note)
{
    struct stat st;
    snprintf(note->name, sizeof note->name, NOTE "%s", making->name);
    note->failed_lately = fstatat(folder, note->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0 &&
                          time(NULL) - st.st_mtim.tv_sec < FAILED_AGE;
}

/* 1 when it was made, 0 when somebody else had made it meanwhile. */
static int make_alone(struct cordon_engine *engine, const struct manifest *manifest, const struct making *making,
                      int folder, const struct note *note, cordon_error *err)
{
    auto_close int lock = openat(folder, note->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return error_sys(err, errno, "prebuild", "cannot write in the directory of compiled programs");
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, CORDON_ESTATE, "prebuild", "%s: somebody else is preparing its compiler", manifest->name);
    auto_close int tree = open_made(folder, making->name);
    int code = tree < 0 ? make(engine, manifest, making, folder, err) : 0;
    auto_close int made = code == 0 && tree < 0 ? open_made(folder, making->name) : -1;
    if (code == 0 && tree < 0 && made < 0)
        code = error_set(err, CORDON_ESTATE, "prebuild", "%s: what its compiler needs is not as it was put there",
                         manifest->name);
    bool given_up = code < 0 && making->go_on && !making->go_on(making->context);
    if (code == 0 || given_up)
        unlinkat(folder, note->name, 0);
    else
        (void)!ftruncate(lock, 1);
    return code < 0 ? code : tree < 0;
}

int cordon_engine_prebuild(cordon_engine *engine, const char *language, int only_look, int (*go_on)(void *context),
                           void *context, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(language, err);
    const struct manifest *manifest;
    auto_making struct making making = {.go_on = go_on, .context = context};
    struct note note;
    int code = catalog_find(engine->catalog, language, &manifest, err);
    if (code < 0 || !manifest->prebuild)
        return code;
    code = prepare_making(engine, manifest, &making, err);
    if (code < 0)
        return code;
    auto_close int folder = open_folder(engine);
    if (folder < 0)
        return error_sys(err, errno, "prebuild", "cannot open the directory of compiled programs");
    auto_close int tree = open_made(folder, making.name);
    read_note(folder, &making, &note);
    if (tree >= 0 || only_look)
        return tree < 0 && !note.failed_lately;
    if (note.failed_lately)
        return error_set(err, CORDON_ESTATE, "prebuild", "%s: preparing its compiler failed a short while ago",
                         manifest->name);
    return make_alone(engine, manifest, &making, folder, &note, err);
}
