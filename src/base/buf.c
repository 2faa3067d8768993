/* Owns the growth rule of byte buffers. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct buf *buf, size_t more)
{
    if (buf->failed || more > (size_t)-1 / 2 - buf->length)
        goto fail;
    size_t need = buf->length + more + 1;
    if (need <= buf->capacity)
        return true;
    size_t capacity = buf->capacity ? buf->capacity : 128;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (!data)
        goto fail;
    buf->data = data;
    buf->capacity = capacity;
    return true;
fail:
    buf->failed = true;
    return false;
}

void buf_append(struct buf *buf, const void *bytes, size_t length)
{
    if (!reserve(buf, length))
        return;
    if (length)
        memcpy(buf->data + buf->length, bytes, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
}

void buf_puts(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        buf->failed = true;
    else if (reserve(buf, (size_t)length)) {
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
}

const char *buf_text(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

void buf_free(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}
