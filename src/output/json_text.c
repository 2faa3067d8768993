/* Owns the writing of JSON. The values are measured first and then written into one piece of memory: output of 60 MiB
 * may become 360 MiB of text, and growing towards that would copy it several times. Pure; any thread. */
#include "output/json_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NUMBER_MAX 32 /* bytes of a number's text */

struct sink {
    char *text; /* NULL: only measured */
    size_t length;
};

static void put(struct sink *sink, const char *bytes, size_t length)
{
    if (sink->text)
        memcpy(sink->text + sink->length, bytes, length);
    sink->length += length;
}

/* What stands after the backslash; 0 for bytes that stand for themselves, 'u' for those in hexadecimal. */
static const char escapes[256] = {[0x00] = 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b',         't',          'n', 'u',
                                  'f',          'r', 'u', 'u', 'u', 'u', 'u', 'u', 'u',         'u',          'u', 'u',
                                  'u',          'u', 'u', 'u', 'u', 'u', 'u', 'u', ['"'] = '"', ['\\'] = '\\'};

static void put_escape(struct sink *sink, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char text[6] = {'\\', escapes[byte], '0', '0', digits[byte >> 4], digits[byte & 15]};
    put(sink, text, escapes[byte] == 'u' ? sizeof text : 2);
}

static void put_string(struct sink *sink, const char *bytes, size_t length)
{
    put(sink, "\"", 1);
    for (size_t at = 0; at < length;) {
        size_t plain = at;
        while (plain < length && !escapes[(unsigned char)bytes[plain]])
            plain++;
        put(sink, bytes + at, plain - at);
        if (plain < length)
            put_escape(sink, (unsigned char)bytes[plain++]);
        at = plain;
    }
    put(sink, "\"", 1);
}

/* The shortest form that reads as the same number, told apart from a whole one. */
static void put_real(struct sink *sink, double value)
{
    char text[NUMBER_MAX];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text - 2, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    if (!strpbrk(text, ".e"))
        memcpy(text + strlen(text), ".0", sizeof ".0");
    put(sink, text, strlen(text));
}

static void put_integer(struct sink *sink, json_int_t value)
{
    char text[NUMBER_MAX];
    put(sink, text, (size_t)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, value));
}

static void put_value(struct sink *sink, const json_t *value);

static void put_array(struct sink *sink, const json_t *array)
{
    size_t i;
    const json_t *item;
    put(sink, "[", 1);
    json_array_foreach((json_t *)array, i, item)
    {
        put(sink, ",", i > 0);
        put_value(sink, item);
    }
    put(sink, "]", 1);
}

static void put_object(struct sink *sink, const json_t *object)
{
    bool more = false;
    put(sink, "{", 1);
    for (void *at = json_object_iter((json_t *)object); at; at = json_object_iter_next((json_t *)object, at)) {
        const char *name = json_object_iter_key(at);
        put(sink, ",", more);
        put_string(sink, name, strlen(name));
        put(sink, ":", 1);
        put_value(sink, json_object_iter_value(at));
        more = true;
    }
    put(sink, "}", 1);
}

static void put_word(struct sink *sink, const char *word)
{
    put(sink, word, strlen(word));
}

static void put_value(struct sink *sink, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(sink, value);
        break;
    case JSON_ARRAY:
        put_array(sink, value);
        break;
    case JSON_STRING:
        put_string(sink, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        put_integer(sink, json_integer_value(value));
        break;
    case JSON_REAL:
        put_real(sink, json_real_value(value));
        break;
    case JSON_TRUE:
        put_word(sink, "true");
        break;
    case JSON_FALSE:
        put_word(sink, "false");
        break;
    case JSON_NULL:
        put_word(sink, "null");
        break;
    }
}

char *json_text(const json_t *value, size_t *length)
{
    struct sink sink = {0};
    if (!value)
        return NULL;
    put_value(&sink, value);
    sink.text = malloc(sink.length + 1);
    if (!sink.text)
        return NULL;
    if (length)
        *length = sink.length;
    sink.text[sink.length] = '\0';
    sink.length = 0;
    put_value(&sink, value);
    return sink.text;
}
