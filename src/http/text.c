/* Owns texts that are shared by answers. */
#include "http/text.h"

#include <stdlib.h>

struct http_text *http_text_new(char *bytes, size_t length)
{
    struct http_text *text = calloc(1, sizeof *text);
    if (!text) {
        free(bytes);
        return NULL;
    }
    *text = (struct http_text){1, bytes, length};
    return text;
}

struct http_text *http_text_ref(struct http_text *text)
{
    text->references++;
    return text;
}

void http_text_unref(struct http_text *text)
{
    if (!text || --text->references)
        return;
    free(text->bytes);
    free(text);
}
