/* Owns how the words of a request appear in errors. Called by the request's setters and readers; must not fail or
 * allocate, since it runs when something already went wrong. */
#include "plan/word.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"

/* Longer names are no typing mistake of ours. */
#define NAME_MAX_COMPARED 32

struct word_shown word_show(const char *word)
{
    struct word_shown shown;
    size_t used = 0;
    for (; used < sizeof shown.text - 4 && word[used]; used++) {
        unsigned char c = (unsigned char)word[used];
        shown.text[used] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    if (word[used]) {
        /* Never leaves half a UTF-8 character before the dots. */
        while (used && ((unsigned char)word[used] & 0xc0) == 0x80)
            used--;
        memcpy(shown.text + used, "...", 3);
        used += 3;
    }
    shown.text[used] = '\0';
    return shown;
}

const char *word_nearest(const char *word, const char *const *names, size_t count)
{
    size_t length = strnlen(word, NAME_MAX_COMPARED + 1);
    if (length < 2 || length > NAME_MAX_COMPARED)
        return NULL;
    const char *nearest = NULL;
    /* A third of a name may be slips, one letter at least: "foo" is no slip of "log". */
    size_t best = (length + 1) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > NAME_MAX_COMPARED)
            continue;
        size_t d = nearest_distance(word, names[i]);
        /* A name given without its unit ("memory" for "memory_bytes") is near however long the unit is. */
        size_t shorter = length < name_length ? length : name_length;
        if (d > 1 && shorter >= 3 && strncmp(word, names[i], shorter) == 0)
            d = 1;
        if (d < best) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}

/* Room for ", and 999 more". */
#define REST_BYTES 16

/* Whole names only: a part of one would look like a name. */
char *word_list(const char *const *names, size_t count, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]) + (i ? 2 : 0), left = i + 1 < count ? REST_BYTES : 1;
        if (used + length + left > size) {
            snprintf(text + used, size - used, "%s%zu more", i ? ", and " : "", count - i);
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", names[i]);
    }
    return text;
}

int word_unknown(cordon_error *err, const char *field, const char *what, const char *word, const char *const *names,
                 size_t count)
{
    const char *nearest = word_nearest(word, names, count);
    if (nearest)
        return error_field(err, field, "there is no %s '%s' (did you mean '%s'?)", what, word_show(word).text, nearest);
    char list[288];
    return error_field(err, field, "there is no %s '%s' (available: %s)", what, word_show(word).text,
                       word_list(names, count, list, sizeof list));
}

struct word_pointer word_pointer(const char *parent, const char *name)
{
    struct word_pointer pointer;
    size_t size = sizeof pointer.text;
    int n = snprintf(pointer.text, size, "%s/", parent);
    size_t used = n > 0 && (size_t)n < size ? (size_t)n : size - 1;
    for (; *name; name++) {
        char escaped[3] = {*name, '\0', '\0'};
        if (*name == '~' || *name == '/') {
            escaped[0] = '~';
            escaped[1] = *name == '~' ? '0' : '1';
        }
        size_t length = strlen(escaped);
        if (used + length >= size)
            break;
        memcpy(pointer.text + used, escaped, length);
        used += length;
    }
    pointer.text[used] = '\0';
    return pointer;
}

struct word_pointer word_pointer_index(const char *parent, size_t index)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", index);
    return word_pointer(parent, digits);
}
