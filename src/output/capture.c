/* Owns what is kept of one output stream. Must never hold more than its cap nor lose count, whatever is fed. Called by
 * the run while the program writes, and once at its end. */
#include "output/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)4096)

static size_t tail_cap(const struct capture *capture)
{
    return capture->cap == SIZE_MAX ? 0 : capture->cap / 4;
}

static size_t head_cap(const struct capture *capture)
{
    return capture->cap - tail_cap(capture);
}

static size_t tail_length(const struct capture *capture)
{
    size_t cap = tail_cap(capture);
    return capture->tail_total < cap ? (size_t)capture->tail_total : cap;
}

void capture_init(struct capture *capture, size_t cap)
{
    *capture = (struct capture){.cap = cap};
}

static bool reserve_head(struct capture *capture, size_t need)
{
    if (need <= capture->head_capacity)
        return true;
    size_t capacity = capture->head_capacity ? capture->head_capacity : FIRST_CAPACITY;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    if (capacity > head_cap(capture))
        capacity = head_cap(capture);
    char *head = realloc(capture->head, capacity);
    if (!head)
        return false;
    capture->head = head;
    capture->head_capacity = capacity;
    return true;
}

static size_t feed_head(struct capture *capture, const char *bytes, size_t length)
{
    size_t room = head_cap(capture) - capture->head_length;
    size_t taken = length < room ? length : room;
    if (taken == 0)
        return 0;
    if (!reserve_head(capture, capture->head_length + taken)) {
        capture->failed = true;
        return 0;
    }
    memcpy(capture->head + capture->head_length, bytes, taken);
    capture->head_length += taken;
    return taken;
}

static void feed_tail(struct capture *capture, const char *bytes, size_t length)
{
    size_t cap = tail_cap(capture);
    if (cap == 0 || length == 0)
        return;
    if (!capture->tail && !(capture->tail = malloc(cap))) {
        capture->failed = true;
        return;
    }
    capture->tail_total += length;
    if (length > cap) {
        bytes += length - cap;
        length = cap;
    }
    size_t first = cap - capture->tail_at < length ? cap - capture->tail_at : length;
    memcpy(capture->tail + capture->tail_at, bytes, first);
    memcpy(capture->tail, bytes + first, length - first);
    capture->tail_at = (capture->tail_at + length) % cap;
}

size_t capture_feed(struct capture *capture, const void *bytes, size_t length)
{
    capture->total += length;
    /* After a failure nothing more is kept: bytes taken later would stand where lost ones should. */
    if (capture->failed || length == 0)
        return 0;
    size_t taken = feed_head(capture, bytes, length);
    if (!capture->failed)
        feed_tail(capture, (const char *)bytes + taken, length - taken);
    return taken;
}

bool capture_truncated(const struct capture *capture)
{
    return capture->total > capture->head_length + (uint64_t)tail_length(capture);
}

char *capture_text(const struct capture *capture, size_t *length, size_t *cut_at)
{
    char marker[64] = "";
    size_t kept = tail_length(capture), cap = tail_cap(capture);
    bool cut = capture_truncated(capture);
    if (cut) {
        bool line_open = capture->head_length && capture->head[capture->head_length - 1] != '\n';
        snprintf(marker, sizeof marker, "%s[cordon: %" PRIu64 " bytes cut]\n", line_open ? "\n" : "",
                 capture->total - capture->head_length - kept);
    }
    size_t marker_length = strlen(marker);
    char *text = malloc(capture->head_length + marker_length + kept + 1);
    if (!text)
        return NULL;
    char *at = text;
    if (capture->head_length)
        at = mempcpy(at, capture->head, capture->head_length);
    at = mempcpy(at, marker, marker_length);
    if (kept) {
        /* A ring that went round begins where the next byte would go. */
        size_t start = capture->tail_total > cap ? capture->tail_at : 0;
        size_t first = cap - start < kept ? cap - start : kept;
        at = mempcpy(at, capture->tail + start, first);
        at = mempcpy(at, capture->tail, kept - first);
    }
    *at = '\0';
    *length = (size_t)(at - text);
    if (cut_at)
        *cut_at = cut ? capture->head_length : *length;
    return text;
}

void capture_free(struct capture *capture)
{
    free(capture->head);
    free(capture->tail);
    capture_init(capture, capture->cap);
}
