/* Fuzzes the reading of a program's value: whatever comes of it can be written and read again, by this parser and
 * within the depth that every reader is promised. */
#include <stdlib.h>

#include "fuzz.h"
#include "output/value.h"

static void check_depth(const json_t *value, size_t left)
{
    size_t i;
    const char *name;
    json_t *inner;
    if ((json_is_array(value) || json_is_object(value)) && left == 0)
        abort();
    json_array_foreach((json_t *)value, i, inner) check_depth(inner, left - 1);
    json_object_foreach((json_t *)value, name, inner) check_depth(inner, left - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = value_parse((const char *)data, size);
    if (!value)
        return 0;
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    json_t *again = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    if (!again)
        abort();
    check_depth(value, VALUE_DEPTH_MAX);
    json_decref(again);
    json_decref(value);
    free(text);
    return 0;
}
