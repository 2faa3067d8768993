/* A program's value: JSON that hostile code wrote, made safe for every reader of a Result. */
#ifndef OUTPUT_VALUE_H
#define OUTPUT_VALUE_H

#include <jansson.h>
#include <stddef.h>

/* Deeper values, and objects with a zero byte in a name, are delivered as a string that holds their JSON text. Readers
 * recurse: with a larger bound a program could break those of its caller (Ruby's reads 100 levels, Python's about 990);
 * with a smaller one, more values would have to be read in two steps. */
#define VALUE_DEPTH_MAX 64

/* A value whose JSON is longer is dropped. */
#define VALUE_BYTES_MAX ((size_t)256 << 10)

/* NULL when the text is no JSON, or without memory. */
json_t *value_parse(const char *text, size_t length);

#endif
