/* Results as text. Unlike the library's own writer, this one takes time in proportion to the text, whatever bytes it
 * holds, asks for memory once, and writes every number so that reading gives the same number again. */
#ifndef OUTPUT_JSON_TEXT_H
#define OUTPUT_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* Compact, NUL-terminated, freed by the caller; NULL without memory or for NULL. `length` may be NULL. */
char *json_text(const json_t *value, size_t *length);

#endif
