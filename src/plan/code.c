/* Owns the form of the message: a line of lengths, then everything those are the lengths of. */
#include "plan/code.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* It must fit into a socket's buffer of ordinary size. */
#define CODE_BYTES_MAX (96 << 10)
#define ITEMS_MAX      512
#define STORE_PAGE     4096

static bool files_fit_limits(const struct code_source *source)
{
    const int64_t *limit = source->limit;
    int64_t bytes = 0;
    for (size_t i = 0; i < source->file_count; i++) {
        int64_t length = (int64_t)source->files[i].length;
        bytes += length + STORE_PAGE;
        if (limit[LIMIT_FILE_BYTES] != LIMIT_UNLIMITED && length > limit[LIMIT_FILE_BYTES])
            return false;
    }
    return 2 * bytes <= limit[LIMIT_DISK_BYTES] && (int64_t)source->file_count * 32 <= limit[LIMIT_INODES];
}

bool code_fits(const struct code_source *source)
{
    if (!files_fit_limits(source))
        return false;
    size_t items = source->handover_count + 1 + 3 * source->file_count, bytes = 8 * items;
    for (size_t i = 0; i < source->handover_count; i++)
        bytes += strlen(source->handover[i]);
    for (size_t i = 0; i < source->file_count && bytes < CODE_BYTES_MAX; i++)
        bytes += strlen(source->files[i].path) + source->files[i].length;
    return items <= ITEMS_MAX && bytes <= CODE_BYTES_MAX;
}

struct code {
    struct iovec parts[1 + ITEMS_MAX];
    size_t count;
    char header[ITEMS_MAX * 8 + 16];
    size_t header_length;
    char modes[ITEMS_MAX / 3][8];
    char file_count[8];
};

/* Of at most seven digits; every run waits for these. */
static size_t put_decimal(char *text, size_t number)
{
    char digits[8];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) && count < sizeof digits);
    for (size_t i = 0; i < count; i++)
        text[i] = digits[count - 1 - i];
    return count;
}

static void add(struct code *code, const void *bytes, size_t length)
{
    code->parts[code->count++] = (struct iovec){(void *)bytes, length};
    code->header_length += put_decimal(code->header + code->header_length, length);
    code->header[code->header_length++] = ' ';
}

int code_send(int socket, const struct code_source *source)
{
    struct code code;
    code.count = 1;
    code.header_length = 0;
    for (size_t i = 0; i < source->handover_count; i++)
        add(&code, source->handover[i], strlen(source->handover[i]));
    add(&code, code.file_count, put_decimal(code.file_count, source->file_count));
    for (size_t i = 0; i < source->file_count; i++) {
        const struct plan_file *file = &source->files[i];
        add(&code, file->path, strlen(file->path));
        add(&code, code.modes[i],
            (size_t)snprintf(code.modes[i], sizeof code.modes[i], "%o", (unsigned)file->mode & 0777));
        add(&code, file->content, file->length);
    }
    code.header[code.header_length - 1] = '\n';
    code.parts[0] = (struct iovec){code.header, code.header_length};
    struct msghdr message = {.msg_iov = code.parts, .msg_iovlen = code.count};
    ssize_t n;
    do
        n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}
