/* Owns the reading of a plan: nothing in the block is used before it was checked, and a sealed block cannot change
 * afterwards. Runs in the warden and on the child side of a cell, so it is async-signal-safe: the arrays of pointers
 * lie in one anonymous mapping. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/control.h"
#include "plan/path.h"
#include "plan/plan.h"
#include "plan/plan_layout.h"

struct reader {
    const char *block;
    uint64_t size;
    /* Strings and contents that a true writer makes never overlap. Taking each from one budget bounds the work of a
     * block whose rows all point at the same large range. */
    uint64_t budget;
    char *room; /* for the arrays; sized beforehand */
};

static int bad(void)
{
    errno = EBADMSG;
    return -1;
}

static const char *range(struct reader *reader, uint64_t offset, uint64_t length)
{
    if (offset > reader->size || length > reader->size - offset || length > reader->budget)
        return NULL;
    reader->budget -= length;
    return reader->block + offset;
}

static const char *string(struct reader *reader, const struct plan_ref *ref)
{
    if (ref->length >= reader->size)
        return NULL;
    const char *text = range(reader, ref->offset, ref->length + 1);
    return text && memchr(text, '\0', ref->length + 1) == text + ref->length ? text : NULL;
}

/* The rows of a table; NULL when it does not lie in the block. */
static const void *rows(const struct reader *reader, const struct plan_table *table, uint64_t most, size_t row_size)
{
    if (table->count > most || table->offset % 8 != 0 || table->offset < sizeof(struct plan_header) ||
        table->offset > reader->size || table->count * row_size > reader->size - table->offset)
        return NULL;
    return reader->block + table->offset;
}

/* The next array of `count` items. */
static void *take(struct reader *reader, uint64_t count, size_t item_size)
{
    void *array = reader->room;
    reader->room += count * item_size;
    return array;
}

static bool any(const char *text)
{
    return *text != '\0';
}

static bool is_variable(const char *text)
{
    return *text != '=' && strchr(text, '=') != NULL;
}

/* What each list must hold: at least so many strings, each of which passes the check. */
static const struct {
    uint64_t least;
    bool (*good)(const char *text);
} list_rules[PLAN_LIST_COUNT] = {
    [PLAN_ARGV] = {1, NULL},      [PLAN_ENVP] = {0, is_variable},
    [PLAN_CANDIDATES] = {1, any}, [PLAN_ETC] = {0, request_path_is_safe},
    [PLAN_HANDOVER] = {0, NULL},
};

static int map_list(struct reader *reader, const struct plan_table *table, enum plan_list list, char ***strings)
{
    const struct plan_ref *refs = rows(reader, table, PLAN_STRINGS_MAX, sizeof *refs);
    if (!refs || table->count < list_rules[list].least)
        return bad();
    *strings = take(reader, table->count + 1, sizeof **strings);
    for (uint64_t i = 0; i < table->count; i++) {
        const char *text = string(reader, &refs[i]);
        if (!text || (list_rules[list].good && !list_rules[list].good(text)))
            return bad();
        (*strings)[i] = (char *)text;
    }
    return 0;
}

static int map_files(struct reader *reader, const struct plan_table *table, struct plan *plan)
{
    const struct plan_file_row *files = rows(reader, table, PLAN_FILE_MAX, sizeof *files);
    if (!files)
        return bad();
    plan->files = take(reader, table->count + 1, sizeof *plan->files);
    for (uint64_t i = 0; i < table->count; i++) {
        const char *path = string(reader, &files[i].path);
        const char *content = range(reader, files[i].content.offset, files[i].content.length);
        /* A mode with set-user-id bits would be made real by whoever writes the file. */
        if (!path || !content || !request_path_is_safe(path) || files[i].mode & ~UINT32_C(0777) || files[i].zero)
            return bad();
        plan->files[i] = (struct plan_file){path, content, files[i].content.length, files[i].mode};
    }
    plan->file_count = table->count;
    return 0;
}

static int map_mounts(struct reader *reader, const struct plan_table *table, struct plan *plan)
{
    const struct plan_mount_row *mounts = rows(reader, table, PLAN_MOUNT_MAX, sizeof *mounts);
    if (!mounts)
        return bad();
    plan->mounts = take(reader, table->count + 1, sizeof *plan->mounts);
    for (uint64_t i = 0; i < table->count; i++) {
        const char *destination = string(reader, &mounts[i].destination);
        if (!destination || mount_destination_problem(destination) || mounts[i].writable > 1 || mounts[i].zero)
            return bad();
        plan->mounts[i] = (struct plan_mount){destination, mounts[i].writable};
    }
    plan->mount_count = table->count;
    return 0;
}

static int map_header(const struct plan_header *header, uint64_t size, struct plan *plan)
{
    if (header->magic != PLAN_MAGIC || header->version != PLAN_VERSION || header->size != size ||
        header->flags & ~PLAN_FLAGS_KNOWN || header->optional >> CONTROL_COUNT)
        return bad();
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (header->limit[i] <= 0)
            return bad();
        plan->limit[i] = header->limit[i];
    }
    plan->optional = header->optional;
    plan->value_pipe = header->flags & PLAN_FLAG_VALUE_PIPE;
    plan->terminals = header->flags & PLAN_FLAG_TERMINALS;
    return 0;
}

/* Room for every array, each with one item more for its end; 0 when a count is beyond reason. */
static size_t arrays_size(const struct plan_header *header)
{
    uint64_t size = 0;
    for (int i = 0; i < PLAN_LIST_COUNT; i++) {
        if (header->list[i].count > PLAN_STRINGS_MAX)
            return 0;
        size += (header->list[i].count + 1) * sizeof(char *);
    }
    if (header->files.count > PLAN_FILE_MAX || header->mounts.count > PLAN_MOUNT_MAX)
        return 0;
    size += (header->files.count + 1) * sizeof(struct plan_file);
    return size + (header->mounts.count + 1) * sizeof(struct plan_mount);
}

static int map_block(struct plan *plan)
{
    const struct plan_header *header = plan->mapping;
    plan->arrays_size = arrays_size(header);
    if (!plan->arrays_size)
        return bad();
    plan->arrays = mmap(NULL, plan->arrays_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (plan->arrays == MAP_FAILED) {
        plan->arrays = NULL;
        return -1;
    }
    struct reader reader = {plan->mapping, plan->mapping_size, plan->mapping_size, plan->arrays};
    if (map_header(header, reader.size, plan) != 0 || map_files(&reader, &header->files, plan) != 0 ||
        map_mounts(&reader, &header->mounts, plan) != 0)
        return -1;
    char ***const lists[PLAN_LIST_COUNT] = {[PLAN_ARGV] = &plan->argv,
                                            [PLAN_ENVP] = &plan->envp,
                                            [PLAN_CANDIDATES] = &plan->candidates,
                                            [PLAN_ETC] = &plan->etc,
                                            [PLAN_HANDOVER] = &plan->handover};
    for (int i = 0; i < PLAN_LIST_COUNT; i++)
        if (map_list(&reader, &header->list[i], (enum plan_list)i, lists[i]) != 0)
            return -1;
    plan->handover_count = header->list[PLAN_HANDOVER].count;
    plan->pool = header->pool;
    plan->slots = header->slots;
    return 0;
}

int plan_map(int memfd, struct plan *plan)
{
    /* Only the seals make the checks below lasting, so they come first. */
    int seals = fcntl(memfd, F_GET_SEALS);
    struct stat st;
    if (seals < 0 || (seals & PLAN_SEALS) != PLAN_SEALS)
        return bad();
    if (fstat(memfd, &st) != 0)
        return -1;
    if (st.st_size < (off_t)sizeof(struct plan_header) || (uint64_t)st.st_size > PLAN_BYTES_MAX)
        return bad();
    struct plan mapped = {.mapping_size = (size_t)st.st_size};
    mapped.mapping = mmap(NULL, mapped.mapping_size, PROT_READ, MAP_PRIVATE, memfd, 0);
    if (mapped.mapping == MAP_FAILED)
        return -1;
    if (map_block(&mapped) != 0) {
        int saved = errno;
        plan_unmap(&mapped);
        errno = saved;
        return -1;
    }
    *plan = mapped;
    return 0;
}

void plan_unmap(struct plan *plan)
{
    if (plan->arrays)
        munmap(plan->arrays, plan->arrays_size);
    if (plan->mapping)
        munmap(plan->mapping, plan->mapping_size);
    *plan = (struct plan){0};
}
