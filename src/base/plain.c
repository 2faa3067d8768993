/* Owns which characters a terminal is not given. Pure. Called wherever text of a program, or of its files' names, is
 * shown to a person. */
#include "base/plain.h"

#include <stdint.h>
#include <string.h>

/* The character at `text`, and its length in bytes; bytes that are no character are -1, one at a time. */
static int32_t next(const unsigned char *text, size_t length, size_t *bytes)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    *bytes = 1;
    if (first < 0x80)
        return first;
    size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || size > length)
        return -1;
    int32_t code = first & (0x7f >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return -1;
    *bytes = size;
    return code;
}

static bool steers(int32_t code)
{
    static const int32_t ranges[][2] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},
                                        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return code < 0;
}

void plain_put(struct buf *out, const char *text, size_t length, const char *kept)
{
    for (size_t at = 0, bytes; at < length; at += bytes) {
        int32_t code = next((const unsigned char *)text + at, length - at, &bytes);
        bool is_kept = code > 0 && code < 0x20 && strchr(kept, code);
        if (steers(code) && !is_kept)
            buf_puts(out, "?");
        else
            buf_append(out, text + at, bytes);
    }
}

char *plain_copy(const char *text)
{
    struct buf out = {0};
    plain_put(&out, text, strlen(text), "");
    buf_append(&out, "", 0);
    if (out.failed)
        buf_free(&out);
    return out.data;
}

void plain_put_json(struct buf *out, const char *json, size_t length)
{
    for (size_t at = 0, bytes; at < length; at += bytes) {
        int32_t code = next((const unsigned char *)json + at, length - at, &bytes);
        if (code >= 0x7f && steers(code))
            buf_printf(out, "\\u%04x", (unsigned)code);
        else
            buf_append(out, json + at, bytes);
    }
}
