/* Words of a request in error messages: showing what was given, suggesting what was meant, pointing at where. Pure. */
#ifndef PLAN_WORD_H
#define PLAN_WORD_H

#include <cordon/error.h>
#include <stddef.h>

#define WORD_SHOWN_MAX 64

struct word_shown {
    char text[WORD_SHOWN_MAX];
};

/* `word` fit for one line of a message: control bytes become '?', a long one is cut and ends in "...". */
struct word_shown word_show(const char *word);

/* The name most like `word`, or NULL when none is near. */
const char *word_nearest(const char *word, const char *const *names, size_t count);
/* "a, b, c" into `text`, or "a, b, and 7 more" where not all fit; returns `text`. */
char *word_list(const char *const *names, size_t count, char *text, size_t size);

/* "there is no WHAT 'WORD'", with the nearest name or else all of them; returns CORDON_EINVAL. */
int word_unknown(cordon_error *err, const char *field, const char *what, const char *word, const char *const *names,
                 size_t count);

struct word_pointer {
    char text[128]; /* as cordon_error.field; a longer pointer ends where it no longer fits */
};

/* "/parent/name" with `name` escaped as RFC 6901 asks; `parent` is "" or begins with a slash. */
struct word_pointer word_pointer(const char *parent, const char *name);
struct word_pointer word_pointer_index(const char *parent, size_t index);

#endif
