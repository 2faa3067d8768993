/* Owns base64 as RFC 4648 section 4 has it: padded, one line, and only the canonical form is read, so that each text
 * stands for one content. Pure. Called for files in requests and for output in results. */
#include <stdint.h>
#include <stdlib.h>

#include "output/utf8.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t length, size_t *encoded_length)
{
    if (length > (SIZE_MAX - 1) / 4 * 3 - 3)
        return NULL;
    const unsigned char *from = bytes;
    size_t total = (length + 2) / 3 * 4;
    char *text = malloc(total + 1);
    if (!text)
        return NULL;
    char *to = text;
    for (size_t i = 0; i < length; i += 3, to += 4) {
        size_t left = length - i;
        uint32_t group = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                         (left > 2 ? (uint32_t)from[i + 2] : 0);
        to[0] = alphabet[group >> 18];
        to[1] = alphabet[group >> 12 & 63];
        to[2] = left > 1 ? alphabet[group >> 6 & 63] : '=';
        to[3] = left > 2 ? alphabet[group & 63] : '=';
    }
    *to = '\0';
    if (encoded_length)
        *encoded_length = total;
    return text;
}

/* 0..63, or -1 for a byte outside the alphabet. */
static int digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool decode(const unsigned char *text, size_t text_length, size_t length, unsigned char *to)
{
    for (size_t i = 0, done = 0; i < text_length; i += 4) {
        size_t count = length - done < 3 ? length - done : 3;
        uint32_t group = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = j <= count ? digit(text[i + j]) : 0;
            if (value < 0)
                return false;
            group = group << 6 | (uint32_t)value;
        }
        /* Bits beyond the last byte would let two texts mean the same. */
        if (group & ((UINT32_C(1) << (8 * (3 - count))) - 1))
            return false;
        for (size_t j = 0; j < count; j++)
            to[done++] = (unsigned char)(group >> (16 - 8 * j));
    }
    return true;
}

void *base64_decode(const char *text, size_t text_length, size_t *length, bool *bad)
{
    *bad = text_length % 4 != 0;
    if (*bad)
        return NULL;
    size_t padding = 0;
    while (padding < 2 && padding < text_length && text[text_length - 1 - padding] == '=')
        padding++;
    size_t total = text_length / 4 * 3 - padding;
    unsigned char *bytes = malloc(total + 1);
    if (!bytes)
        return NULL;
    if (!decode((const unsigned char *)text, text_length, total, bytes)) {
        free(bytes);
        *bad = true;
        return NULL;
    }
    bytes[total] = '\0';
    *length = total;
    return bytes;
}
