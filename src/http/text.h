/* A text that several answers send without each having a copy of it. Counted references; one thread. */
#ifndef HTTP_TEXT_H
#define HTTP_TEXT_H

#include <stddef.h>

struct http_text {
    unsigned references;
    char *bytes; /* with a NUL behind them */
    size_t length;
};

/* Takes `bytes`, which are freed with the last reference, or at once when memory is out: then NULL. */
struct http_text *http_text_new(char *bytes, size_t length);
struct http_text *http_text_ref(struct http_text *text);
void http_text_unref(struct http_text *text);

#endif
