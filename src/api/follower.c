/* Owns the form of stream events, as SSE and as lines of JSON, and the order in which one follower is told them: the
 * start, that the run is under way, its output, and its result. Called when the follower's client has read what it was
 * sent before. */
#include "api/follower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "output/json_text.h"
#include "output/utf8.h"

/* Of output, or of the result, in one part. More makes each follower hold more; less costs more calls. */
#define PIECE_BYTES ((size_t)16 << 10)

static void begin_line(struct buf *part, bool sse, const char *type)
{
    if (sse)
        buf_printf(part, "event: %s\ndata: ", type);
}

static void end_line(struct buf *part, bool sse)
{
    buf_puts(part, sse ? "\n\n" : "\n");
}

static void add_line(struct buf *part, bool sse, const char *type, const char *json)
{
    begin_line(part, sse, type);
    buf_puts(part, json);
    end_line(part, sse);
}

/* Bytes from within a character, where one began to follow, are no text yet. */
static json_t *data_json(const struct events *events, const char *bytes, size_t length)
{
    size_t text_length;
    auto_free char *text =
        events->base64 ? base64_encode(bytes, length, &text_length) : utf8_repair(bytes, length, &text_length);
    return text ? json_stringn(text, text_length) : json_null();
}

/* Where to cut what is longer than a piece: behind a line if there is one, else between two characters. */
static size_t piece_length(const struct events *events, const char *bytes, size_t length)
{
    if (length <= PIECE_BYTES)
        return length;
    const char *line = events->base64 ? NULL : memrchr(bytes, '\n', PIECE_BYTES);
    if (line)
        return (size_t)(line - bytes) + 1;
    size_t piece = PIECE_BYTES;
    while (!events->base64 && piece > PIECE_BYTES - 4 && ((unsigned char)bytes[piece] & 0xc0) == 0x80)
        piece--;
    return piece;
}

static void add_output(struct follower *follower, struct buf *part)
{
    const struct events *events = follower->events;
    while (events->segments[follower->segment].at + events->segments[follower->segment].length <= follower->at)
        follower->segment++;
    const struct segment *segment = &events->segments[follower->segment];
    const char *bytes = events->bytes.data + follower->at, *name = segment->stream == 1 ? "stdout" : "stderr";
    size_t length = piece_length(events, bytes, segment->at + segment->length - follower->at);
    json_t *event = json_pack("{s:s, s:I, s:o}", "type", name, "offset", (json_int_t)follower->at, "data",
                              data_json(events, bytes, length));
    auto_free char *text = json_text(event, NULL);
    json_decref(event);
    follower->at += length;
    if (text)
        add_line(part, follower->sse, name, text);
    else
        part->failed = true;
}

/* The result is one line, of which each part has a piece. */
static enum http_part add_result(struct follower *follower, struct buf *part)
{
    const struct http_text *result = follower->events->result;
    size_t left = result->length - follower->result_at, length = left < PIECE_BYTES ? left : PIECE_BYTES;
    if (!follower->ending) {
        begin_line(part, follower->sse, "result");
        buf_puts(part, "{\"type\":\"result\",\"result\":");
        follower->ending = true;
    }
    buf_append(part, result->bytes + follower->result_at, length);
    follower->result_at += length;
    if (length < left)
        return HTTP_PART_ADDED;
    buf_puts(part, "}");
    end_line(part, follower->sse);
    return HTTP_PART_LAST;
}

enum http_part follower_next(void *context, struct buf *part)
{
    struct follower *follower = context;
    const struct events *events = follower->events;
    char start[96];
    snprintf(start, sizeof start, "{\"type\":\"start\",\"id\":\"%s\"}", follower->id);
    if (!follower->started)
        add_line(part, follower->sse, "start", start);
    else if (follower->running)
        add_line(part, follower->sse, "status", "{\"type\":\"status\",\"state\":\"running\"}");
    else if (follower->at < events->bytes.length)
        add_output(follower, part);
    else if (events->result)
        return add_result(follower, part);
    else if (events->ended)
        return HTTP_PART_LAST;
    else if (follower->pinged)
        add_line(part, follower->sse, "ping", "{\"type\":\"ping\"}");
    else
        return HTTP_PART_LATER;
    follower->running &= !follower->started;
    follower->started = true;
    follower->pinged = false;
    return HTTP_PART_ADDED;
}
