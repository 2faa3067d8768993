/* Owns the form of a kept compile step:
 *
 *   header | a row for each file | denials | paths, each with its NUL | stdout | stderr | contents
 *
 * The header's hash covers everything before the contents, each row's hash the content of its file. A reader believes
 * no number before it has checked that hash and that all parts together are exactly as long as the file. */
#include "engine/compile_entry.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "plan/path.h"

#define MAGIC    "cordonC1"
#define TEXT_MAX (UINT64_C(16) << 20)
#define CHUNK    ((size_t)256 * 1024)

struct header {
    char magic[8];
    uint8_t key[SHA256_BYTES];
    uint8_t head_sha256[SHA256_BYTES]; /* with this field as zeros */
    uint64_t size;                     /* of the whole entry */
    uint64_t contents_at;
    uint64_t paths_length;
    uint64_t out_length[2];
    uint32_t file_count;
    uint32_t denial_count;
    uint32_t controls, cgroup;
};

struct row {
    uint64_t size;
    uint32_t mode;
    uint32_t path_length; /* with its NUL */
    uint8_t sha256[SHA256_BYTES];
};

static void hash_head(const struct header *header, const char *after, size_t length, uint8_t digest[SHA256_BYTES])
{
    struct header blank = *header;
    struct sha256 hash;
    memset(blank.head_sha256, 0, sizeof blank.head_sha256);
    sha256_begin(&hash);
    sha256_add(&hash, &blank, sizeof blank);
    sha256_add(&hash, after, length);
    sha256_end(&hash, digest);
}

/* One file behind the other, hashed on the way. A file that is not as long as it was is none to keep. */
static int copy_content(int to, const struct collected_file *file, char *chunk, uint8_t digest[SHA256_BYTES])
{
    struct sha256 hash;
    sha256_begin(&hash);
    for (uint64_t done = 0; done < file->size;) {
        size_t want = file->size - done < CHUNK ? (size_t)(file->size - done) : CHUNK;
        ssize_t n = pread(file->fd, chunk, want, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || fd_write_all(to, chunk, (size_t)n) < 0)
            return -1;
        sha256_add(&hash, chunk, (size_t)n);
        done += (size_t)n;
    }
    sha256_end(&hash, digest);
    return 0;
}

static void put_head(struct buf *head, const struct collected *made, const struct row *rows,
                     const struct outcome *outcome)
{
    buf_append(head, rows, made->count * sizeof *rows);
    buf_append(head, outcome->denials, outcome->denial_count * sizeof *outcome->denials);
    for (size_t i = 0; i < made->count; i++)
        buf_append(head, made->items[i].path, rows[i].path_length);
    for (int i = 0; i < 2; i++)
        buf_append(head, outcome->out[i], outcome->out_length[i]);
}

/* A step whose result is not all there would not be the same when it is given back. */
static bool is_whole(const struct collected *made, const struct outcome *outcome)
{
    for (size_t i = 0; i < made->count; i++)
        if (made->items[i].mode & ~UINT32_C(0777) || made->items[i].fd < 0)
            return false;
    return outcome->status == CORDON_STATUS_OK && !outcome->truncated[0] && !outcome->truncated[1] && made->count &&
           made->count <= COLLECT_FILES_MAX && !made->skipped && outcome->denial_count <= DENIALS_MAX &&
           outcome->out_length[0] <= TEXT_MAX && outcome->out_length[1] <= TEXT_MAX;
}

static void measure(struct header *header, struct row *rows, const struct collected *made)
{
    uint64_t contents = 0;
    for (size_t i = 0; i < made->count; i++) {
        const struct collected_file *file = &made->items[i];
        rows[i] = (struct row){.size = file->size, .mode = file->mode, .path_length = (uint32_t)strlen(file->path) + 1};
        header->paths_length += rows[i].path_length;
        contents += file->size;
    }
    header->contents_at = sizeof *header + made->count * sizeof *rows + header->denial_count * sizeof(struct denial) +
                          header->paths_length + header->out_length[0] + header->out_length[1];
    header->size = header->contents_at + contents;
}

int compile_entry_write(int fd, const struct compile_key *key, const struct collected *made,
                        const struct outcome *outcome, uint64_t most)
{
    if (!is_whole(made, outcome))
        return -1;
    struct header header = {.magic = MAGIC,
                            .out_length = {outcome->out_length[0], outcome->out_length[1]},
                            .file_count = (uint32_t)made->count,
                            .denial_count = (uint32_t)outcome->denial_count,
                            .controls = outcome->controls,
                            .cgroup = outcome->cgroup};
    memcpy(header.key, key->bytes, sizeof header.key);
    auto_free struct row *rows = calloc(made->count, sizeof *rows);
    auto_free char *chunk = malloc(CHUNK);
    if (!rows || !chunk)
        return -1;
    measure(&header, rows, made);
    if (header.size > most || header.size > COMPILE_ENTRY_BYTES_MAX ||
        lseek(fd, (off_t)header.contents_at, SEEK_SET) < 0)
        return -1;
    for (size_t i = 0; i < made->count; i++)
        if (copy_content(fd, &made->items[i], chunk, rows[i].sha256) < 0)
            return -1;
    auto_buf struct buf head = {0};
    put_head(&head, made, rows, outcome);
    if (head.failed || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    hash_head(&header, head.data, head.length, header.head_sha256);
    return fd_write_all(fd, &header, sizeof header) < 0 || fd_write_all(fd, head.data, head.length) < 0 ? -1 : 0;
}

static char *read_whole(int fd, uint64_t *size)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < sizeof(struct header) ||
        (uint64_t)st.st_size > COMPILE_ENTRY_BYTES_MAX)
        return NULL;
    char *block = malloc((size_t)st.st_size);
    if (!block || lseek(fd, 0, SEEK_SET) < 0 || fd_read_all(fd, block, (size_t)st.st_size) != st.st_size) {
        free(block);
        return NULL;
    }
    *size = (uint64_t)st.st_size;
    return block;
}

/* Bounds first, so that no sum below can run over. */
static bool header_is_sound(const struct header *header, const struct compile_key *key, uint64_t size)
{
    if (memcmp(header->magic, MAGIC, sizeof header->magic) != 0 ||
        memcmp(header->key, key->bytes, sizeof header->key) != 0 || header->size != size || !header->file_count ||
        header->file_count > COLLECT_FILES_MAX || header->denial_count > DENIALS_MAX || header->paths_length > size ||
        header->out_length[0] > TEXT_MAX || header->out_length[1] > TEXT_MAX)
        return false;
    return header->contents_at <= size &&
           header->contents_at == sizeof *header + header->file_count * sizeof(struct row) +
                                      header->denial_count * sizeof(struct denial) + header->paths_length +
                                      header->out_length[0] + header->out_length[1];
}

static bool content_is_right(const char *content, const struct row *row)
{
    uint8_t digest[SHA256_BYTES];
    sha256_of(content, (size_t)row->size, digest);
    return !memcmp(digest, row->sha256, sizeof digest);
}

static int take_files(const struct header *header, const char *block, bool trusted, struct collected *made)
{
    const char *rows = block + sizeof *header;
    const char *path = rows + header->file_count * sizeof(struct row) + header->denial_count * sizeof(struct denial);
    const char *paths_end = path + header->paths_length;
    uint64_t at = header->contents_at;
    made->items = calloc(header->file_count, sizeof *made->items);
    if (!made->items)
        return -1;
    for (uint32_t i = 0; i < header->file_count; i++) {
        struct row row;
        memcpy(&row, rows + i * sizeof row, sizeof row);
        if (row.path_length > (size_t)(paths_end - path) || !row.path_length || path[row.path_length - 1] ||
            strlen(path) + 1 != row.path_length || !request_path_is_safe(path) || row.mode & ~UINT32_C(0777) ||
            row.size > header->size - at)
            return -1;
        char *copy = trusted || content_is_right(block + at, &row) ? strdup(path) : NULL;
        if (!copy)
            return -1;
        made->items[made->count++] =
            (struct collected_file){.path = copy, .size = row.size, .mode = row.mode, .fd = -1, .content = block + at};
        path += row.path_length;
        at += row.size;
    }
    return path == paths_end && at == header->size ? 0 : -1;
}

/* Nothing was spent this time, and so no usage and no time is told. */
static int take_outcome(const struct header *header, const char *block, struct outcome *outcome)
{
    const char *denials = block + sizeof *header + header->file_count * sizeof(struct row);
    const char *text = denials + header->denial_count * sizeof(struct denial) + header->paths_length;
    *outcome = (struct outcome){.status = CORDON_STATUS_OK,
                                .cached = true,
                                .controls = header->controls,
                                .cgroup = header->cgroup,
                                .denial_count = header->denial_count};
    outcome->denials = calloc(header->denial_count + 1, sizeof *outcome->denials);
    if (!outcome->denials)
        return -1;
    memcpy(outcome->denials, denials, header->denial_count * sizeof *outcome->denials);
    for (size_t i = 0; i < outcome->denial_count; i++) {
        struct denial *denial = &outcome->denials[i];
        denial->kind[sizeof denial->kind - 1] = denial->what[sizeof denial->what - 1] = '\0';
        denial->hint[sizeof denial->hint - 1] = '\0';
    }
    for (int i = 0; i < 2; i++) {
        size_t length = (size_t)header->out_length[i];
        outcome->out[i] = malloc(length + 1);
        if (!outcome->out[i])
            return -1;
        memcpy(outcome->out[i], text, length);
        outcome->out[i][length] = '\0';
        outcome->out_length[i] = outcome->out_total[i] = outcome->cut_at[i] = length;
        text += length;
    }
    return 0;
}

int compile_entry_read(int fd, const struct compile_key *key, bool trusted, struct collected *made,
                       struct outcome *outcome)
{
    uint64_t size;
    uint8_t digest[SHA256_BYTES];
    struct header header;
    auto_free char *block = read_whole(fd, &size);
    if (!block)
        return -1;
    memcpy(&header, block, sizeof header);
    if (!header_is_sound(&header, key, size))
        return -1;
    hash_head(&header, block + sizeof header, (size_t)header.contents_at - sizeof header, digest);
    if (memcmp(digest, header.head_sha256, sizeof digest) != 0 || header.cgroup > CGROUP_V2)
        return -1;
    struct collected files = {0};
    struct outcome found = {0};
    if (take_files(&header, block, trusted, &files) < 0 || take_outcome(&header, block, &found) < 0) {
        collected_free(&files);
        outcome_free(&found);
        return -1;
    }
    files.block = take_ptr(&block);
    *made = files;
    *outcome = found;
    return 0;
}
