/* Owns how output is cut into pieces for followers. Called by execution.c, in the daemon's loop. */
#include "api/lines.h"

#include <string.h>

#include "base/clock.h"

static void flush_one(struct lines *lines, int stream)
{
    struct buf *held = &lines->held[stream - 1];
    if (held->length)
        lines->tell(lines->context, stream, held->data, held->length);
    held->length = 0;
}

static void flush_all(void *context)
{
    flush_one(context, 1);
    flush_one(context, 2);
}

void lines_init(struct lines *lines, struct loop *loop,
                void (*tell)(void *context, int stream, const void *bytes, size_t length), void *context)
{
    *lines = (struct lines){.loop = loop, .tell = tell, .context = context};
    lines->timer = (struct loop_timer){.expired = flush_all, .context = lines};
}

/* The bytes up to the last newline; all of them where too much would wait. */
static size_t whole_lines(const char *bytes, size_t length, size_t waiting)
{
    const char *last = memrchr(bytes, '\n', length);
    size_t whole = last ? (size_t)(last - bytes) + 1 : 0, rest = length - whole + (whole ? 0 : waiting);
    return rest > LINES_HELD_MAX ? length : whole;
}

void lines_add(struct lines *lines, int stream, const void *bytes, size_t length)
{
    struct buf *held = &lines->held[stream - 1];
    size_t whole = whole_lines(bytes, length, held->length);
    flush_one(lines, stream == 1 ? 2 : 1);
    if (whole && held->length) {
        buf_append(held, bytes, whole);
        flush_one(lines, stream);
    } else if (whole) {
        lines->tell(lines->context, stream, bytes, whole);
    }
    buf_append(held, (const char *)bytes + whole, length - whole);
    /* Without memory what waits is lost to followers; the result has it. */
    if (held->failed)
        buf_free(held);
    if (!held->length)
        loop_set_timer(lines->loop, &lines->timer, 0);
    else if (!lines->timer.at_us)
        loop_set_timer(lines->loop, &lines->timer, clock_us() + LINES_WAIT_MS * 1000);
}

void lines_end(struct lines *lines)
{
    if (!lines->loop)
        return;
    flush_all(lines);
    loop_drop_timer(lines->loop, &lines->timer);
    for (int i = 0; i < 2; i++)
        buf_free(&lines->held[i]);
    lines->loop = NULL;
}
