/* Text that programs wrote, for a terminal: without what would steer it, or show other text than there is. */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the text with '?' for each control character (U+0000 to U+001F, U+007F to U+009F), each character that
 * changes the direction of text or ends a line by another name (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to
 * U+2069), and each byte that is no UTF-8. Those of the ASCII control characters that `kept` names stay. */
void plain_put(struct buf *out, const char *text, size_t length, const char *kept);
/* A NUL-terminated copy of a text of one line; NULL when memory is out. */
char *plain_copy(const char *text);
/* Appends JSON with such characters as "\u…" escapes: it means the same. They can only be in strings. */
void plain_put_json(struct buf *out, const char *json, size_t length);

#endif
