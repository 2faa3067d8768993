/* One stream on its way through the rules. */
#ifndef OUTPUT_REDACT_STREAM_H
#define OUTPUT_REDACT_STREAM_H

#include "output/redact_rules.h"

/* Automata a stream runs through: the operator's values and the request's. */
#define REDACT_AUTOMATA 2

/* What all streams of one redactor share. */
struct redact_choice {
    const struct redact_rules *rules;
    struct rule_set chosen;
    bool classes[REDACT_CLASSES]; /* which databases are needed */
    const struct literals *literals[REDACT_AUTOMATA];
    hs_scratch_t *scratch;
    struct rule_set may_hold[256];        /* chosen rules whose heads may have the byte */
    struct rule_set may_begin[256];       /* … may begin with it */
    struct rule_set wide;                 /* … may have longer heads than they count */
    uint8_t by_longest[REDACT_RULES_MAX]; /* chosen rules, those with the shortest heads first */
    size_t by_longest_count;
    size_t longest_head;
    size_t longest; /* of any head or known value */
};

struct redact_stream;

/* Fills in what follows from the members before `may_hold`. */
void redact_choice_prepare(struct redact_choice *choice);

typedef void (*redact_counted)(void *context, size_t rule);

/* NULL when memory is out. `choice` is borrowed; `counted` is told of each replacement. */
struct redact_stream *redact_stream_new(const struct redact_choice *choice, redact_counted counted, void *context);
void redact_stream_feed(struct redact_stream *stream, const void *bytes, size_t length, cordon_emit emit, void *sink);
/* Lets out what is held; the next byte begins a new stream. */
void redact_stream_end(struct redact_stream *stream, cordon_emit emit, void *sink);
void redact_stream_free(struct redact_stream *stream);

#endif
