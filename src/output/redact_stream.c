/* Owns redaction of one stream, in pieces of any size. What is replaced is a function of the whole text alone:
 *
 *   A match is a rule's head, as hyperscan finds it (all ends, each with its leftmost start; of a head longer than the
 *   rule's `longest` only so many last bytes count), and every byte of the rule's tail class that follows it. A BEGIN
 *   match goes on to the first END after it, at most REDACT_BLOCK_MAX bytes. Matches that overlap are one region. Each
 *   region is replaced once, by the text of the match that starts first, of several the one whose rule comes first.
 *
 * So that no piece boundary shows, a match is settled only when no match that starts before it can still be found:
 * bytes are let out up to the first position at which an unfinished match may start. */
#include "output/redact_stream.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Longer feeds are worked through in pieces of this size, so that a stream's memory has a bound. */
#define SLICE 16384

struct event {
    uint64_t from, to;
    size_t rule;
};

/* Bytes of a rule's tail class that follow one another: looked at once, however many matches end among them. */
struct run {
    uint64_t from, to;
};

struct redact_stream {
    const struct redact_choice *choice;
    redact_counted counted;
    void *context;
    hs_stream_t *scans[REDACT_CLASSES];
    uint32_t states[REDACT_AUTOMATA];
    unsigned char *bytes; /* those from `base` to `end` */
    uint64_t base, end;
    uint64_t done;    /* let out or replaced up to here */
    uint64_t covered; /* end of the last region so far */
    bool in_block;    /* after a BEGIN */
    uint64_t block_start, block_limit;
    struct rule_set open; /* rules whose run reaches `end` and is part of the last region */
    struct event *events; /* not settled yet */
    size_t event_count, event_capacity;
    bool sorted;
    bool failed; /* nothing is let out any more */
    struct run runs[];
};

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void begin_with(struct redact_choice *choice, size_t index)
{
    const struct shape *shape = &choice->rules->rules[index].shape;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (shape->within.has[byte])
            rule_set_add(&choice->may_hold[byte], index);
        if (!shape->start_count && shape->within.has[byte])
            rule_set_add(&choice->may_begin[byte], index);
    }
    for (size_t i = 0; i < shape->start_count; i++) {
        unsigned char first = (unsigned char)shape->starts[i][0];
        rule_set_add(&choice->may_begin[first], index);
        if (shape->caseless) {
            rule_set_add(&choice->may_begin[tolower(first)], index);
            rule_set_add(&choice->may_begin[toupper(first)], index);
        }
    }
}

static void insert_by_longest(struct redact_choice *choice, size_t index)
{
    const struct redact_rule *rules = choice->rules->rules;
    size_t at = choice->by_longest_count++;
    for (; at > 0 && rules[choice->by_longest[at - 1]].longest > rules[index].longest; at--)
        choice->by_longest[at] = choice->by_longest[at - 1];
    choice->by_longest[at] = (uint8_t)index;
}

void redact_choice_prepare(struct redact_choice *choice)
{
    const struct redact_rules *rules = choice->rules;
    for (size_t i = 0; i < rules->count; i++) {
        if (!rules->rules[i].row.pattern || !rule_set_has(&choice->chosen, i))
            continue;
        choice->classes[rules->rules[i].row.class] = true;
        begin_with(choice, i);
        if (rules->rules[i].wide)
            rule_set_add(&choice->wide, i);
        insert_by_longest(choice, i);
    }
    if (choice->by_longest_count)
        choice->longest_head = rules->rules[choice->by_longest[choice->by_longest_count - 1]].longest;
    choice->longest = choice->longest_head;
    for (unsigned i = 0; i < REDACT_AUTOMATA; i++)
        if (choice->literals[i] && literals_longest(choice->literals[i]) > choice->longest)
            choice->longest = literals_longest(choice->literals[i]);
}

struct redact_stream *redact_stream_new(const struct redact_choice *choice, redact_counted counted, void *context)
{
    struct redact_stream *stream = calloc(1, sizeof *stream + choice->rules->count * sizeof *stream->runs);
    if (!stream)
        return NULL;
    stream->choice = choice;
    stream->counted = counted;
    stream->context = context;
    stream->sorted = true;
    stream->bytes = malloc(choice->longest + 1 + SLICE);
    bool fine = stream->bytes;
    for (unsigned i = 0; fine && i < REDACT_CLASSES; i++)
        fine = !choice->classes[i] || hs_open_stream(choice->rules->databases[i], 0, &stream->scans[i]) == HS_SUCCESS;
    if (!fine) {
        redact_stream_free(stream);
        return NULL;
    }
    return stream;
}

void redact_stream_free(struct redact_stream *stream)
{
    if (!stream)
        return;
    for (unsigned i = 0; i < REDACT_CLASSES; i++)
        if (stream->scans[i])
            hs_close_stream(stream->scans[i], NULL, NULL, NULL);
    if (stream->bytes)
        explicit_bzero(stream->bytes, stream->choice->longest + 1 + SLICE);
    free(stream->bytes);
    free(stream->events);
    free(stream);
}

static unsigned char byte_at(const struct redact_stream *stream, uint64_t offset)
{
    return stream->bytes[offset - stream->base];
}

static const struct redact_rule *rule_of(const struct redact_stream *stream, size_t rule)
{
    return &stream->choice->rules->rules[rule];
}

/* Matches of one rule that overlap are one, tails included: of two runs that begin one after the other either both end
 * together or the second ends later. It keeps a flood of matches from becoming a flood of events. */
static bool join_last(struct redact_stream *stream, size_t rule, uint64_t from, uint64_t to)
{
    struct event *last = stream->event_count ? &stream->events[stream->event_count - 1] : NULL;
    if (!last || last->rule != rule || from >= last->to || from < last->from || to < last->to ||
        rule_of(stream, rule)->row.role != REDACT_MATCH)
        return false;
    last->to = to;
    return true;
}

static void add_event(struct redact_stream *stream, size_t rule, uint64_t from, uint64_t to)
{
    if (stream->failed || join_last(stream, rule, from, to))
        return;
    if (stream->event_count == stream->event_capacity) {
        size_t capacity = stream->event_capacity ? stream->event_capacity * 2 : 32;
        struct event *larger = reallocarray(stream->events, capacity, sizeof *larger);
        if (!larger) {
            stream->failed = true;
            return;
        }
        stream->events = larger;
        stream->event_capacity = capacity;
    }
    if (stream->event_count && stream->events[stream->event_count - 1].from >= from)
        stream->sorted = false;
    stream->events[stream->event_count++] = (struct event){from, to, rule};
}

static int on_match(unsigned rule, unsigned long long from, unsigned long long to, unsigned flags, void *context)
{
    struct redact_stream *stream = context;
    (void)flags;
    if (!rule_set_has(&stream->choice->chosen, rule))
        return 0;
    unsigned longest = rule_of(stream, rule)->longest;
    if (to - from > longest)
        from = to - longest;
    add_event(stream, rule, from, to);
    return 0;
}

static void on_known(void *context, uint64_t from, uint64_t to)
{
    add_event(context, 0, from, to);
}

/* The end of the run that begins at `from`. */
static uint64_t run_end(struct redact_stream *stream, size_t rule, uint64_t from)
{
    const struct shape *shape = &rule_of(stream, rule)->shape;
    struct run *run = &stream->runs[rule];
    uint64_t at = from;
    if (!shape->has_tail)
        return from;
    while (at < stream->end && shape->tail.has[byte_at(stream, at)])
        at = at >= run->from && at < run->to ? run->to : at + 1;
    /* The furthest is kept: it may be open. */
    if (at >= run->to)
        *run = (struct run){from, at};
    return at;
}

static void let_out(struct redact_stream *stream, uint64_t to, cordon_emit emit, void *sink)
{
    if (to <= stream->done)
        return;
    emit(sink, stream->bytes + (stream->done - stream->base), to - stream->done);
    stream->done = to;
}

static void cover(struct redact_stream *stream, uint64_t to)
{
    stream->covered = greater(stream->covered, to);
    stream->done = greater(stream->done, stream->covered);
}

/* What is known of the block when everything that starts before `to` is. */
static void go_on_with_block(struct redact_stream *stream, uint64_t to)
{
    if (!stream->in_block)
        return;
    stream->in_block = to < stream->block_limit;
    cover(stream, lesser(to, stream->block_limit));
}

static void begin_region(struct redact_stream *stream, const struct event *event, cordon_emit emit, void *sink)
{
    const char *replace = rule_of(stream, event->rule)->row.replace;
    let_out(stream, event->from, emit, sink);
    if (*replace)
        emit(sink, replace, strlen(replace));
    stream->counted(stream->context, event->rule);
}

static void settle(struct redact_stream *stream, const struct event *event, cordon_emit emit, void *sink)
{
    enum redact_role role = rule_of(stream, event->rule)->row.role;
    bool inside = event->from < stream->covered || (stream->in_block && event->from < stream->block_limit);
    go_on_with_block(stream, event->from);
    if (role == REDACT_END) {
        if (!stream->in_block || event->from < stream->block_start)
            return;
        stream->in_block = false;
        cover(stream, event->to);
        return;
    }
    if (!inside)
        begin_region(stream, event, emit, sink);
    uint64_t to = run_end(stream, event->rule, event->to);
    if (to == stream->end && rule_of(stream, event->rule)->shape.has_tail)
        rule_set_add(&stream->open, event->rule);
    cover(stream, to);
    if (role == REDACT_BEGIN) {
        stream->in_block = true;
        stream->block_start = event->to;
        stream->block_limit = event->to + REDACT_BLOCK_MAX;
    }
}

static int by_start(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->rule != b->rule)
        return a->rule < b->rule ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* Settles what starts before `safe`, and lets out what is left of the text before it. */
static void settle_before(struct redact_stream *stream, uint64_t safe, cordon_emit emit, void *sink)
{
    if (!stream->sorted)
        qsort(stream->events, stream->event_count, sizeof *stream->events, by_start);
    stream->sorted = true;
    size_t settled = 0;
    while (settled < stream->event_count && stream->events[settled].from < safe)
        settle(stream, &stream->events[settled++], emit, sink);
    if (settled)
        memmove(stream->events, stream->events + settled, (stream->event_count - settled) * sizeof *stream->events);
    stream->event_count -= settled;
    go_on_with_block(stream, safe);
    let_out(stream, safe, emit, sink);
}

static bool same(unsigned char a, unsigned char b, bool caseless)
{
    return a == b || (caseless && tolower(a) == tolower(b));
}

/* Whether what stands at `from` is one of the rule's starts, or as much of one as there is yet. */
static bool starts_at(const struct redact_stream *stream, size_t rule, uint64_t from)
{
    const struct shape *shape = &rule_of(stream, rule)->shape;
    for (size_t i = 0; i < shape->start_count; i++) {
        const char *start = shape->starts[i];
        uint64_t at = from;
        while (*start && at < stream->end && same((unsigned char)*start, byte_at(stream, at), shape->caseless)) {
            start++;
            at++;
        }
        if (!*start || at == stream->end)
            return true;
    }
    return !shape->start_count;
}

/* `length` bytes that the rule may hold are the last ones, from `from` on. A head that is complete is still looked at:
 * its end may be a condition on the next byte. */
static bool may_be_match(const struct redact_stream *stream, size_t index, uint64_t from, uint64_t length,
                         const struct rule_set *begins)
{
    const struct redact_rule *rule = rule_of(stream, index);
    if (rule->wide && length == rule->longest)
        return true;
    return rule_set_has(begins, index) && starts_at(stream, index, from);
}

/* The first position at which a match of a pattern may start whose end has not come yet. */
static uint64_t first_unfinished(const struct redact_stream *stream)
{
    const struct redact_choice *choice = stream->choice;
    struct rule_set left = choice->chosen;
    uint64_t first = stream->end, any = 1, most = lesser(stream->end - stream->base, choice->longest_head);
    for (uint64_t length = 1, passed = 0; any && length <= most; length++) {
        uint64_t at = stream->end - length;
        unsigned char byte = byte_at(stream, at);
        any = 0;
        for (; rule_of(stream, choice->by_longest[passed])->longest < length; passed++)
            rule_set_remove(&left, choice->by_longest[passed]);
        for (unsigned word = 0; word < REDACT_RULES_MAX / 64; word++) {
            left.bits[word] &= choice->may_hold[byte].bits[word];
            any |= left.bits[word];
            uint64_t bits = left.bits[word] & (choice->may_begin[byte].bits[word] | choice->wide.bits[word]);
            for (; bits; bits &= bits - 1)
                if (may_be_match(stream, word * 64 + (size_t)__builtin_ctzll(bits), at, length,
                                 &choice->may_begin[byte]))
                    first = at;
        }
    }
    return first;
}

static uint64_t safe_position(const struct redact_stream *stream)
{
    uint64_t safe = first_unfinished(stream);
    for (unsigned i = 0; i < REDACT_AUTOMATA; i++)
        if (stream->choice->literals[i])
            safe = lesser(safe, stream->end - literals_depth(stream->choice->literals[i], stream->states[i]));
    return safe;
}

static void go_on_with_runs(struct redact_stream *stream)
{
    for (unsigned word = 0; word < REDACT_RULES_MAX / 64; word++)
        for (uint64_t bits = stream->open.bits[word]; bits; bits &= bits - 1) {
            size_t rule = word * 64 + (size_t)__builtin_ctzll(bits);
            uint64_t to = run_end(stream, rule, stream->runs[rule].to);
            cover(stream, to);
            if (to < stream->end)
                stream->open.bits[word] &= ~(bits & -bits);
        }
}

/* Nobody needs what is further back than the longest match reaches and is let out already. */
static void make_room(struct redact_stream *stream)
{
    uint64_t kept = lesser(stream->end - stream->base, stream->choice->longest + 1);
    uint64_t from = stream->end - kept;
    memmove(stream->bytes, stream->bytes + (from - stream->base), kept);
    stream->base = from;
}

static void scan(struct redact_stream *stream, const void *bytes, size_t length)
{
    const struct redact_choice *choice = stream->choice;
    for (unsigned i = 0; i < REDACT_CLASSES; i++)
        if (stream->scans[i] && hs_scan_stream(stream->scans[i], bytes, (unsigned)length, 0, choice->scratch, on_match,
                                               stream) != HS_SUCCESS)
            stream->failed = true;
    for (unsigned i = 0; i < REDACT_AUTOMATA; i++)
        if (choice->literals[i])
            stream->states[i] =
                literals_scan(choice->literals[i], stream->states[i], bytes, length, stream->end, on_known, stream);
}

static void feed_slice(struct redact_stream *stream, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    make_room(stream);
    memcpy(stream->bytes + (stream->end - stream->base), bytes, length);
    scan(stream, bytes, length);
    stream->end += length;
    if (stream->failed)
        return;
    go_on_with_runs(stream);
    settle_before(stream, safe_position(stream), emit, sink);
}

void redact_stream_feed(struct redact_stream *stream, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    for (size_t at = 0; at < length && !stream->failed; at += SLICE)
        feed_slice(stream, (const char *)bytes + at, length - at < SLICE ? length - at : SLICE, emit, sink);
}

/* Everything about the text; what belongs to the stream's life stays. */
static void forget(struct redact_stream *stream)
{
    memset(stream->states, 0, sizeof stream->states);
    stream->base = stream->end = stream->done = stream->covered = 0;
    stream->in_block = stream->failed = false;
    stream->open = (struct rule_set){0};
    stream->event_count = 0;
    stream->sorted = true;
    memset(stream->runs, 0, stream->choice->rules->count * sizeof *stream->runs);
}

void redact_stream_end(struct redact_stream *stream, cordon_emit emit, void *sink)
{
    static const char lost[] = "[REDACTION_FAILED]";
    for (unsigned i = 0; i < REDACT_CLASSES; i++)
        if (stream->scans[i] &&
            hs_reset_stream(stream->scans[i], 0, stream->choice->scratch, on_match, stream) != HS_SUCCESS)
            stream->failed = true;
    if (stream->failed)
        emit(sink, lost, sizeof lost - 1);
    else
        settle_before(stream, stream->end, emit, sink);
    forget(stream);
}
