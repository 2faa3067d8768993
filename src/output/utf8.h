/* Text for JSON out of bytes a program wrote. */
#ifndef OUTPUT_UTF8_H
#define OUTPUT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

bool utf8_valid(const char *bytes, size_t length);
/* A NUL-terminated copy in which every maximal invalid sequence is U+FFFD; NULL when memory is out. */
char *utf8_repair(const char *bytes, size_t length, size_t *repaired_length);
/* A NUL-terminated copy of bytes that are not UTF-8 in which every byte that is no part of a character is "\xHH", and a
 * backslash is two: different bytes have different copies. NULL when memory is out. */
char *utf8_escape(const char *bytes, size_t length);
char *base64_encode(const void *bytes, size_t length, size_t *encoded_length);
/* NULL with `*bad` true when the text is not base64. */
void *base64_decode(const char *text, size_t text_length, size_t *length, bool *bad);

#endif
