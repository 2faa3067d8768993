/* Owns what counts as UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF) and how other bytes
 * are replaced. Pure. Called when results become JSON. */
#include "output/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT        "\xef\xbf\xbd"
#define REPLACEMENT_LENGTH 3

/* Lead bytes with the range of their second byte; later bytes are always 80..BF. The narrower ranges rule out overlong
 * forms, surrogates and what lies beyond Unicode. */
static const struct {
    unsigned char first, last, low, high, length;
} leads[] = {
    {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

/* The length of the sequence at `bytes`: all of it when valid, else as far as it could have become one (at least 1),
 * which is the part that one replacement character stands for. */
static size_t sequence(const unsigned char *bytes, size_t length, bool *valid)
{
    size_t row = 0, rows = sizeof leads / sizeof leads[0];
    while (row < rows && (bytes[0] < leads[row].first || bytes[0] > leads[row].last))
        row++;
    *valid = false;
    if (row == rows)
        return 1;
    size_t at = 1;
    unsigned char low = leads[row].low, high = leads[row].high;
    for (; at < leads[row].length; at++, low = 0x80, high = 0xbf)
        if (at >= length || bytes[at] < low || bytes[at] > high)
            return at;
    *valid = true;
    return at;
}

/* Output is mostly ASCII: eight bytes at a time. */
static size_t ascii_length(const unsigned char *bytes, size_t length)
{
    size_t at = 0;
    for (uint64_t word; length - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (at < length && bytes[at] < 0x80)
        at++;
    return at;
}

bool utf8_valid(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    bool valid = true;
    while (length && valid) {
        size_t n = ascii_length(at, length);
        if (n == 0)
            n = sequence(at, length, &valid);
        at += n;
        length -= n;
    }
    return valid;
}

/* Writes to `out` unless it is NULL; the repaired length. */
static size_t repair(const unsigned char *at, size_t length, char *out)
{
    size_t total = 0;
    while (length) {
        bool valid = true;
        size_t n = ascii_length(at, length);
        if (n == 0)
            n = sequence(at, length, &valid);
        const void *from = valid ? (const void *)at : REPLACEMENT;
        size_t size = valid ? n : REPLACEMENT_LENGTH;
        if (out)
            memcpy(out + total, from, size);
        total += size;
        at += n;
        length -= n;
    }
    return total;
}

char *utf8_repair(const char *bytes, size_t length, size_t *repaired_length)
{
    size_t total = repair((const unsigned char *)bytes, length, NULL);
    char *text = malloc(total + 1);
    if (!text)
        return NULL;
    repair((const unsigned char *)bytes, length, text);
    text[total] = '\0';
    if (repaired_length)
        *repaired_length = total;
    return text;
}

char *utf8_escape(const char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(4 * length + 1), *to = text;
    if (!text)
        return NULL;
    for (size_t at = 0; at < length;) {
        bool valid = true;
        const unsigned char *from = (const unsigned char *)bytes + at;
        size_t n = *from < 0x80 ? 1 : sequence(from, length - at, &valid);
        for (size_t i = 0; i < n; i++) {
            if (!valid)
                *to++ = '\\', *to++ = 'x', *to++ = digits[from[i] >> 4], *to++ = digits[from[i] & 15];
            else
                *to++ = (char)from[i];
            if (from[i] == '\\')
                *to++ = '\\';
        }
        at += n;
    }
    *to = '\0';
    return text;
}
