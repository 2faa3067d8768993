/* Owns what a run delivered, and the list of those that follow it. */
#include "api/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/follower.h"
#include "base/cleanup.h"
#include "output/utf8.h"

struct events *events_new(bool base64)
{
    struct events *events = calloc(1, sizeof *events);
    if (events)
        *events = (struct events){.references = 1, .base64 = base64};
    return events;
}

void events_unref(struct events *events)
{
    if (!events || --events->references)
        return;
    http_text_unref(events->result);
    free(events->segments);
    buf_free(&events->bytes);
    free(events);
}

/* Delivering */

/* How many bytes at the end begin a character that may still be completed. */
static size_t incomplete_tail(const char *bytes, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char c = (unsigned char)bytes[length - back];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t needs = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return needs > back ? back : 0;
    }
    return 0;
}

static void wake_all(const struct events *events)
{
    for (const struct follower *each = events->followers; each; each = each->next)
        http_stream_wake(each->http);
}

static void deliver_bytes(struct events *events, int stream, const char *bytes, size_t length)
{
    if (events->segment_count == events->segment_capacity) {
        size_t capacity = events->segment_capacity ? 2 * events->segment_capacity : 16;
        struct segment *segments = reallocarray(events->segments, capacity, sizeof *segments);
        if (!segments)
            return;
        events->segments = segments;
        events->segment_capacity = capacity;
    }
    size_t at = events->bytes.length;
    buf_append(&events->bytes, bytes, length);
    if (events->bytes.failed)
        return;
    struct segment *last = events->segment_count ? &events->segments[events->segment_count - 1] : NULL;
    if (last && last->stream == stream)
        last->length += length;
    else
        events->segments[events->segment_count++] = (struct segment){at, length, stream};
    wake_all(events);
}

/* What is not UTF-8 is repaired before it is counted, so that a client can add up what it was told. */
static void deliver(struct events *events, int stream, const char *bytes, size_t length)
{
    size_t repaired_length;
    if (!length)
        return;
    auto_free char *repaired =
        events->base64 || utf8_valid(bytes, length) ? NULL : utf8_repair(bytes, length, &repaired_length);
    deliver_bytes(events, stream, repaired ? repaired : bytes, repaired ? repaired_length : length);
}

void events_add(struct events *events, int stream, const void *bytes, size_t length)
{
    if (!events->kept && !events->followers)
        return;
    char *held = events->held[stream - 1];
    size_t *held_length = &events->held_length[stream - 1];
    auto_buf struct buf whole = {0};
    buf_append(&whole, held, *held_length);
    buf_append(&whole, bytes, length);
    size_t later = events->base64 ? 0 : incomplete_tail(buf_text(&whole), whole.length);
    memcpy(held, buf_text(&whole) + whole.length - later, later);
    *held_length = later;
    deliver(events, stream, buf_text(&whole), whole.length - later);
}

/* Gives back the spare memory of the output's buffer, which grew by doubling and is kept after the run's end. */
static void trim(struct buf *buf)
{
    char *data = buf->data ? realloc(buf->data, buf->length + 1) : NULL;
    if (!data)
        return;
    buf->data = data;
    buf->capacity = buf->length + 1;
}

void events_end(struct events *events, struct http_text *result)
{
    for (int stream = 1; stream <= 2; stream++) {
        deliver(events, stream, events->held[stream - 1], events->held_length[stream - 1]);
        events->held_length[stream - 1] = 0;
    }
    trim(&events->bytes);
    events->ended = true;
    if (!events->result && result)
        events->result = http_text_ref(result);
    wake_all(events);
}

void events_running(struct events *events)
{
    for (struct follower *each = events->followers; each; each = each->next)
        each->running = true;
    wake_all(events);
}

void events_ping(struct events *events)
{
    for (struct follower *each = events->followers; each; each = each->next)
        each->pinged = true;
    wake_all(events);
}

size_t events_bytes(const struct events *events)
{
    return events->bytes.capacity + events->segment_capacity * sizeof *events->segments;
}

/* Following */

static void on_closed(void *context)
{
    struct follower *follower = context;
    *follower->link = follower->next;
    if (follower->next)
        follower->next->link = follower->link;
    events_unref(follower->events);
    follower->closed(follower->context);
    free(follower);
}

bool events_follow(struct events *events, struct http_call *http, bool sse, const char *id, size_t offset,
                   void (*closed)(void *context), void *context)
{
    struct follower *follower = calloc(1, sizeof *follower);
    if (!follower)
        return false;
    *follower = (struct follower){.next = events->followers,
                                  .link = &events->followers,
                                  .events = events,
                                  .http = http,
                                  .sse = sse,
                                  .at = offset,
                                  .closed = closed,
                                  .context = context};
    snprintf(follower->id, sizeof follower->id, "%s", id);
    if (follower->next)
        follower->next->link = &follower->next;
    events->followers = follower;
    events->references++;
    const struct http_stream stream = {follower_next, on_closed, follower};
    http_stream(http, 200, sse ? "text/event-stream" : "application/x-ndjson", &stream);
    return true;
}
