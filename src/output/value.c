/* Owns what becomes of the JSON that a program wrote as its value. The text is hostile: it may be deep, or hold what
 * JSON allows and the parser does not (numbers beyond 64 bits, halves of surrogate pairs). Pure. Called when a result
 * is made and when its value is redacted. */
#include "output/value.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "output/utf8.h"

#define ESCAPE_LENGTH 6 /* of \uXXXX */

/* Moves past a string whose opening quote is at `at`. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at + 1;
}

static size_t depth_of(const char *text, size_t length)
{
    size_t depth = 0, most = 0;
    for (size_t at = 0; at < length;) {
        if (text[at] == '"') {
            at = skip_string(text, length, at);
            continue;
        }
        if (text[at] == '[' || text[at] == '{')
            most = ++depth > most ? depth : most;
        else if (text[at] == ']' || text[at] == '}')
            depth -= depth > 0;
        at++;
    }
    return most;
}

/* The code unit of the escape at `at`; 0 when there is none. */
static unsigned unit_at(const char *text, size_t length, size_t at)
{
    char digits[5] = {0};
    if (at + ESCAPE_LENGTH > length || text[at] != '\\' || text[at + 1] != 'u')
        return 0;
    memcpy(digits, text + at + 2, 4);
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)digits[i]))
            return 0;
    return (unsigned)strtoul(digits, NULL, 16);
}

static bool is_high(unsigned unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(unsigned unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

/* JavaScript's strings may hold half of a pair, which is no character: U+FFFD stands for it, as for any other bytes
 * that are no text. */
static void repair_surrogates(char *text, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        if (text[at] != '\\')
            continue;
        unsigned unit = unit_at(text, length, at);
        if (is_high(unit) && is_low(unit_at(text, length, at + ESCAPE_LENGTH)))
            at += 2 * ESCAPE_LENGTH - 1;
        else if (is_high(unit) || is_low(unit)) {
            memcpy(text + at + 2, "fffd", 4);
            at += ESCAPE_LENGTH - 1;
        } else
            at++; /* what is escaped may be a backslash */
    }
}

static json_t *parse(const char *text, size_t length, size_t flags, json_error_t *err)
{
    return json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL | flags, err);
}

json_t *value_parse(const char *text, size_t length)
{
    size_t repaired_length;
    json_error_t err;
    auto_free char *repaired = utf8_repair(text, length, &repaired_length);
    if (!repaired)
        return NULL;
    if (depth_of(repaired, repaired_length) > VALUE_DEPTH_MAX)
        return json_stringn(repaired, repaired_length);
    repair_surrogates(repaired, repaired_length);
    json_t *value = parse(repaired, repaired_length, 0, &err);
    if (!value && json_error_code(&err) == json_error_numeric_overflow)
        value = parse(repaired, repaired_length, JSON_DECODE_INT_AS_REAL, &err);
    if (!value && json_error_code(&err) == json_error_null_byte_in_key)
        value = json_stringn(repaired, repaired_length);
    return value;
}
