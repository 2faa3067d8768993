/* Owns the making of a plan: one sealed memfd that a warden can trust not to change under it. Refuses what plan_map()
 * would refuse, with a better message. File contents go straight into the memfd and are never gathered on the heap.
 * Called by the engine for every step of a run. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include "base/buf.h"
#include "base/control.h"
#include "base/error.h"
#include "base/fd.h"
#include "plan/path.h"
#include "plan/plan.h"
#include "plan/plan_layout.h"
#include "plan/word.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define STEP "plan"

/* The block up to the contents: tables first, at offsets known from the counts, then the strings. */
struct draft {
    struct plan_header header;
    struct buf tables;
    struct buf strings;
    uint64_t strings_at;
    uint64_t contents_at;
};

static void draft_free(struct draft *draft)
{
    buf_free(&draft->tables);
    buf_free(&draft->strings);
}

static size_t count_strings(char *const *strings)
{
    size_t count = 0;
    while (strings && strings[count])
        count++;
    return count;
}

static struct plan_ref put_string(struct draft *draft, const char *text)
{
    struct plan_ref ref = {draft->strings_at + draft->strings.length, strlen(text)};
    buf_append(&draft->strings, text, ref.length + 1);
    return ref;
}

static struct plan_table open_table(const struct draft *draft, size_t count)
{
    return (struct plan_table){sizeof draft->header + draft->tables.length, count};
}

static int check_source(const struct plan_source *source, cordon_error *err)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (source->limits->value[i] <= 0)
            return error_set(err, CORDON_EINVAL, STEP, "the limit %s is not set", limit_name((enum limit)i));
    if (count_strings(source->argv) == 0 || count_strings(source->candidates) == 0)
        return error_set(err, CORDON_EINVAL, STEP, "there is no command to run");
    if (source->file_count > PLAN_FILE_MAX || source->mount_count > PLAN_MOUNT_MAX)
        return error_set(err, CORDON_EINVAL, STEP, "too many files or mounts; expected at most %d and %d",
                         PLAN_FILE_MAX, PLAN_MOUNT_MAX);
    for (char *const *name = source->etc; name && *name; name++)
        if (!request_path_is_safe(*name))
            return error_set(err, CORDON_EINVAL, STEP, "'%s' is not a name beneath /etc", word_show(*name).text);
    for (char *const *variable = source->envp; variable && *variable; variable++)
        if (!strchr(*variable, '=') || **variable == '=')
            return error_set(err, CORDON_EINVAL, STEP, "an environment variable is not NAME=value");
    for (size_t i = 0; i < source->mount_count; i++)
        if (mount_destination_problem(source->mounts[i].destination))
            return error_set(err, CORDON_EINVAL, STEP, "mount destination '%s' %s",
                             word_show(source->mounts[i].destination).text,
                             mount_destination_problem(source->mounts[i].destination));
    for (size_t i = 0; i < source->file_count; i++) {
        const struct plan_file *file = &source->files[i];
        if (!request_path_is_safe(file->path) || (file->mode & ~UINT32_C(0777)))
            return error_set(err, CORDON_EINVAL, STEP, "file '%s' with mode %o cannot be put into a work directory",
                             word_show(file->path).text, file->mode);
        if (file->length && !file->content && (!source->file_fds || source->file_fds[i] < 0))
            return error_set(err, CORDON_EINVAL, STEP, "file '%s' has no content", word_show(file->path).text);
    }
    return 0;
}

static void put_lists(struct draft *draft, const struct plan_source *source, char *const *const *lists)
{
    for (int i = 0; i < PLAN_LIST_COUNT; i++) {
        size_t count = count_strings(lists[i]);
        draft->header.list[i] = open_table(draft, count);
        for (size_t j = 0; j < count; j++) {
            struct plan_ref row = put_string(draft, lists[i][j]);
            buf_append(&draft->tables, &row, sizeof row);
        }
    }
    draft->header.mounts = open_table(draft, source->mount_count);
    for (size_t i = 0; i < source->mount_count; i++) {
        struct plan_mount_row row = {.destination = put_string(draft, source->mounts[i].destination),
                                     .writable = source->mounts[i].writable};
        buf_append(&draft->tables, &row, sizeof row);
    }
}

/* Contents follow the last string, so the length of all paths must be known before the first row is made. */
static int put_files(struct draft *draft, const struct plan_source *source, cordon_error *err)
{
    draft->header.files = open_table(draft, source->file_count);
    uint64_t paths_length = 0;
    for (size_t i = 0; i < source->file_count; i++)
        paths_length += strlen(source->files[i].path) + 1;
    draft->contents_at = draft->strings_at + draft->strings.length + paths_length;
    uint64_t at = draft->contents_at;
    for (size_t i = 0; i < source->file_count; i++) {
        const struct plan_file *file = &source->files[i];
        struct plan_file_row row = {
            .path = put_string(draft, file->path), .content = {at, file->length}, .mode = file->mode};
        buf_append(&draft->tables, &row, sizeof row);
        if (at > PLAN_BYTES_MAX || file->length > PLAN_BYTES_MAX - at)
            return error_set(err, CORDON_EINVAL, STEP, "the files are too large together; expected at most %llu bytes",
                             (unsigned long long)PLAN_BYTES_MAX);
        at += file->length;
    }
    draft->header.size = at;
    return 0;
}

static int draft_make(struct draft *draft, const struct plan_source *source, cordon_error *err)
{
    char *const *const lists[PLAN_LIST_COUNT] = {[PLAN_ARGV] = source->argv,
                                                 [PLAN_ENVP] = source->envp,
                                                 [PLAN_CANDIDATES] = source->candidates,
                                                 [PLAN_ETC] = source->etc,
                                                 [PLAN_HANDOVER] = source->handover};
    draft->header.magic = PLAN_MAGIC;
    draft->header.version = PLAN_VERSION;
    memcpy(draft->header.limit, source->limits->value, sizeof draft->header.limit);
    draft->header.optional = source->optional & (CONTROL_BIT(CONTROL_COUNT) - 1);
    draft->header.pool = source->pool;
    draft->header.slots = source->slots;
    draft->header.flags =
        (source->value_pipe ? PLAN_FLAG_VALUE_PIPE : 0) | (source->terminals ? PLAN_FLAG_TERMINALS : 0);
    draft->strings_at = sizeof draft->header + source->mount_count * sizeof(struct plan_mount_row) +
                        source->file_count * sizeof(struct plan_file_row);
    for (int i = 0; i < PLAN_LIST_COUNT; i++) {
        size_t count = count_strings(lists[i]);
        if (count > PLAN_STRINGS_MAX)
            return error_set(err, CORDON_EINVAL, STEP, "%zu strings are too many; expected at most %d", count,
                             PLAN_STRINGS_MAX);
        draft->strings_at += count * sizeof(struct plan_ref);
    }
    put_lists(draft, source, lists);
    int failed = put_files(draft, source, err);
    if (failed)
        return failed;
    return draft->tables.failed || draft->strings.failed ? error_nomem(err) : 0;
}

/* Content that lives in a file: the length is fixed by now, and a file that shrank meanwhile must not leave zeros. */
static int copy_from(int memfd, int file_fd, const struct plan_file *file, cordon_error *err)
{
    off_t at = 0;
    while ((uint64_t)at < file->length) {
        ssize_t n = sendfile(memfd, file_fd, &at, file->length - (size_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, errno, STEP, "cannot read '%s'", word_show(file->path).text);
        if (n == 0)
            return error_set(err, CORDON_ESYSTEM, STEP, "'%s' became shorter while it was read",
                             word_show(file->path).text);
    }
    return 0;
}

/* Everything is written in the order of the block, so the memfd's own position is the offset. */
static int write_block(int memfd, const struct draft *draft, const struct plan_source *source, cordon_error *err)
{
    if (ftruncate(memfd, (off_t)draft->header.size) != 0 ||
        fd_write_all(memfd, &draft->header, sizeof draft->header) != 0 ||
        fd_write_all(memfd, draft->tables.data, draft->tables.length) != 0 ||
        fd_write_all(memfd, draft->strings.data, draft->strings.length) != 0)
        return error_sys(err, errno, STEP, "cannot write the plan");
    for (size_t i = 0; i < source->file_count; i++) {
        const struct plan_file *file = &source->files[i];
        if (file->content && fd_write_all(memfd, file->content, file->length) != 0)
            return error_sys(err, errno, STEP, "cannot write '%s' into the plan", word_show(file->path).text);
        if (!file->content && file->length) {
            int failed = copy_from(memfd, source->file_fds[i], file, err);
            if (failed)
                return failed;
        }
    }
    return 0;
}

int plan_write(const struct plan_source *source, int *memfd, cordon_error *err)
{
    int failed = check_source(source, err);
    if (failed)
        return failed;
    __attribute__((cleanup(draft_free))) struct draft draft = {0};
    failed = draft_make(&draft, source, err);
    if (failed)
        return failed;
    /* A host may forbid memfds that could be executed; a kernel before 6.3 does not know how to say that. */
    auto_close int fd = memfd_create("cordon-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("cordon-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_sys(err, errno, STEP, "cannot make a memfd");
    failed = write_block(fd, &draft, source, err);
    if (failed)
        return failed;
    if (fcntl(fd, F_ADD_SEALS, PLAN_SEALS) != 0)
        return error_sys(err, errno, STEP, "cannot seal the plan");
    *memfd = take_fd(&fd);
    return 0;
}
