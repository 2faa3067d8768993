/* Owns the form of stream events, as SSE and as lines of JSON. */
#include "api/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "output/json_text.h"
#include "output/utf8.h"

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

static void add_line(struct buf *lines, bool sse, const char *type, const char *json)
{
    if (sse)
        buf_printf(lines, "event: %s\ndata: ", type);
    buf_puts(lines, json);
    buf_puts(lines, sse ? "\n\n" : "\n");
}

/* False when the subscriber was too slow, and is gone. */
static bool send_line(const struct subscriber *subscriber, const char *type, const char *json)
{
    auto_buf struct buf line = {0};
    add_line(&line, subscriber->sse, type, json);
    return http_stream_write(subscriber->http, buf_text(&line), line.length);
}

/* Bytes from within a character, where somebody began to follow, are no text yet. */
static json_t *data_json(const struct events *events, const char *bytes, size_t length)
{
    size_t text_length;
    auto_free char *text =
        events->base64 ? base64_encode(bytes, length, &text_length) : utf8_repair(bytes, length, &text_length);
    return text ? json_stringn(text, text_length) : json_null();
}

static const char *stream_name(int stream)
{
    return stream == 1 ? "stdout" : "stderr";
}

static char *output_json(const struct events *events, int stream, size_t offset, const char *bytes, size_t length)
{
    json_t *event = json_pack("{s:s, s:I, s:o}", "type", stream_name(stream), "offset", (json_int_t)offset, "data",
                              data_json(events, bytes, length));
    char *text = json_text(event, NULL);
    json_decref(event);
    return text;
}

/* One that is too slow is gone afterwards. */
static void tell_all(struct events *events, const char *type, const char *json)
{
    for (struct subscriber *each = events->subscribers, *next; each; each = next) {
        next = each->next;
        send_line(each, type, json);
    }
}

/* To one who began beyond what there was: what it has not got yet. */
static void tell_rest(const struct subscriber *subscriber, int stream, size_t offset, const char *bytes, size_t length)
{
    size_t skipped = subscriber->from - offset;
    auto_free char *text =
        skipped < length ? output_json(subscriber->events, stream, subscriber->from, bytes + skipped, length - skipped)
                         : NULL;
    if (text)
        send_line(subscriber, stream_name(stream), text);
}

static void tell_output(struct events *events, int stream, size_t offset, const char *bytes, size_t length)
{
    auto_free char *text = events->subscribers ? output_json(events, stream, offset, bytes, length) : NULL;
    for (struct subscriber *each = events->subscribers, *next; text && each; each = next) {
        next = each->next;
        if (each->from > offset)
            tell_rest(each, stream, offset, bytes, length);
        else
            send_line(each, stream_name(stream), text);
    }
}

static void keep(struct events *events, int stream, const char *bytes, size_t length)
{
    if (events->segment_count == events->segment_capacity) {
        size_t capacity = events->segment_capacity ? 2 * events->segment_capacity : 16;
        struct segment *segments = reallocarray(events->segments, capacity, sizeof *segments);
        if (!segments)
            return;
        events->segments = segments;
        events->segment_capacity = capacity;
    }
    struct segment *last = events->segment_count ? &events->segments[events->segment_count - 1] : NULL;
    if (last && last->stream == stream)
        last->length += length;
    else
        events->segments[events->segment_count++] = (struct segment){events->bytes.length, length, stream};
    buf_append(&events->bytes, bytes, length);
}

static void deliver_bytes(struct events *events, int stream, const char *bytes, size_t length)
{
    size_t offset = events->total;
    events->total += length;
    if (events->kept)
        keep(events, stream, bytes, length);
    tell_output(events, stream, offset, bytes, length);
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
    if (!events->kept && !events->subscribers)
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

static void on_left(void *context)
{
    struct subscriber *gone = context;
    for (struct subscriber **link = &gone->events->subscribers; *link; link = &(*link)->next)
        if (*link == gone) {
            *link = gone->next;
            break;
        }
    void (*left)(void *) = gone->left;
    void *left_context = gone->context;
    free(gone);
    if (left)
        left(left_context);
}

static void add_delivered(const struct events *events, bool sse, size_t offset, struct buf *lines)
{
    for (size_t i = 0; i < events->segment_count; i++) {
        const struct segment *segment = &events->segments[i];
        size_t end = segment->at + segment->length, from = offset > segment->at ? offset : segment->at;
        auto_free char *text =
            from < end ? output_json(events, segment->stream, from, events->bytes.data + from, end - from) : NULL;
        if (text)
            add_line(lines, sse, stream_name(segment->stream), text);
    }
}

/* One write, however much there is: the reader is not behind before it was told anything. */
bool events_follow(struct events *events, struct http_call *http, bool sse, const char *id, size_t offset,
                   void (*left)(void *context), void *context)
{
    struct subscriber *subscriber = calloc(1, sizeof *subscriber);
    auto_buf struct buf lines = {0};
    char start[96];
    snprintf(start, sizeof start, "{\"type\":\"start\",\"id\":\"%s\"}", id);
    add_line(&lines, sse, "start", start);
    add_delivered(events, sse, offset, &lines);
    if (!subscriber || lines.failed) {
        free(subscriber);
        return false;
    }
    *subscriber = (struct subscriber){events->subscribers, events, http, sse, offset, left, context};
    events->subscribers = subscriber;
    http_stream(http, 200, sse ? "text/event-stream" : "application/x-ndjson", on_left, subscriber);
    http_stream_write(http, lines.data, lines.length);
    return true;
}

static void send_last(const struct subscriber *subscriber, const char *json)
{
    auto_buf struct buf line = {0};
    add_line(&line, subscriber->sse, "result", json);
    http_stream_end(subscriber->http, buf_text(&line), line.length);
}

void events_end(struct events *events, const char *result)
{
    auto_buf struct buf json = {0};
    for (int stream = 1; stream <= 2; stream++) {
        deliver(events, stream, events->held[stream - 1], events->held_length[stream - 1]);
        events->held_length[stream - 1] = 0;
    }
    buf_puts(&json, "{\"type\":\"result\",\"result\":");
    buf_puts(&json, result);
    buf_puts(&json, "}");
    while (events->subscribers) {
        struct subscriber *subscriber = events->subscribers;
        events->subscribers = subscriber->next;
        send_last(subscriber, buf_text(&json));
        free(subscriber);
    }
}

void events_status(struct events *events, const char *state)
{
    char json[64];
    snprintf(json, sizeof json, "{\"type\":\"status\",\"state\":\"%s\"}", state);
    tell_all(events, "status", json);
}

void events_ping(struct events *events)
{
    tell_all(events, "ping", "{\"type\":\"ping\"}");
}

void events_free(struct events *events)
{
    free(events->segments);
    buf_free(&events->bytes);
}
