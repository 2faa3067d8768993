/* Owns the way of a program's bytes to whoever asked: comparison needs them as they are, and nobody else may see them
 * so. Filtering comes before cutting, because half a secret is not recognised. Called from one thread only: a filter
 * has a state. */
#include "judge/show.h"

#include "base/cleanup.h"
#include "output/utf8.h"

static void append(void *sink, const void *bytes, size_t length)
{
    buf_append(sink, bytes, length);
}

void show_filter(const cordon_filter *filter, int stream, struct slice bytes, struct buf *out)
{
    buf_append(out, "", 0);
    if (!filter)
        buf_append(out, bytes.data, bytes.length);
    else if (stream || !filter->text) {
        int through = stream ? stream : 1;
        if (bytes.length)
            filter->output(filter->context, through, bytes.data, bytes.length, append, out);
        filter->output(filter->context, through, "", 0, append, out);
    } else
        filter->text(filter->context, "value", bytes.data, bytes.length, append, out);
}

json_t *show_text(struct slice bytes, size_t most)
{
    auto_buf struct buf cut = {0};
    size_t length = bytes.length < most ? bytes.length : most;
    while (length < bytes.length && length && ((unsigned char)bytes.data[length] & 0xc0) == 0x80)
        length--;
    size_t repaired_length;
    auto_free char *repaired = utf8_repair(bytes.data, length, &repaired_length);
    if (!repaired)
        return NULL;
    buf_append(&cut, repaired, repaired_length);
    if (length < bytes.length)
        buf_printf(&cut, "\n[cordon: %zu bytes cut]\n", bytes.length - length);
    return cut.failed ? NULL : json_stringn(buf_text(&cut), cut.length);
}
