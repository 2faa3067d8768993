/* Owns a run's redactor: what its request chose, its secret variables, its streams and its counts. Called by whoever
 * runs requests for others; the rest of src/output knows nothing of it. */
#include "output/redact.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "output/redact_stream.h"
#include "output/utf8.h"
#include "output/value.h"
#include "plan/word.h"

enum { WHERE_STDOUT, WHERE_STDERR, WHERE_VALUE, WHERE_FILE, WHERES };
static const char *const where_names[WHERES] = {"stdout", "stderr", "value", "file"};

/* Whole texts follow one another, so that they share a stream. */
enum { STREAM_STDOUT, STREAM_STDERR, STREAM_TEXT, STREAMS };

struct redactor {
    struct redact_choice choice;
    struct literals *literals; /* the request's secret variables, or NULL */
    struct place {
        struct redactor *redactor;
        unsigned where;
        struct redact_stream *stream;
    } places[STREAMS];
    uint64_t (*counts)[WHERES];
    struct redaction *rows;
};

static int unknown_rule(const struct redact_rules *rules, const char *name, size_t index, cordon_error *err)
{
    const char *names[REDACT_RULES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rules[i].row.role != REDACT_END)
            names[count++] = rules->rules[i].row.name;
    return word_unknown(err, word_pointer_index("/sanitize", index).text, "rule", name, names, count);
}

static int choose_named(struct redact_choice *choice, const struct strings *names, cordon_error *err)
{
    for (size_t n = 0; n < names->count; n++) {
        bool found = false;
        for (size_t i = 0; i < choice->rules->count; i++)
            if (strcmp(choice->rules->rules[i].row.name, names->items[n]) == 0) {
                rule_set_add(&choice->chosen, i);
                found = true;
            }
        if (!found)
            return unknown_rule(choice->rules, names->items[n], n, err);
    }
    return 0;
}

static int choose(struct redact_choice *choice, const cordon_request *request, enum sanitize fallback,
                  cordon_error *err)
{
    enum sanitize wanted = request->sanitize == SANITIZE_DEFAULT ? fallback : request->sanitize;
    if (wanted == SANITIZE_NAMED)
        return choose_named(choice, &request->rules, err);
    for (size_t i = 0; i < choice->rules->count; i++)
        if (wanted == SANITIZE_ALL ||
            (wanted == SANITIZE_SECRETS && choice->rules->rules[i].row.class == REDACT_SECRET))
            rule_set_add(&choice->chosen, i);
    return 0;
}

/* A value marked as secret is replaced whatever `sanitize` says: the mark is the more particular word. */
static int add_variables(struct redactor *redactor, const cordon_request *request, cordon_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < request->env_count; i++) {
        const struct request_env *variable = &request->env[i];
        size_t length = strlen(variable->value);
        if (!variable->secret || !length)
            continue;
        if (length < LITERAL_MIN) {
            error_field(err, word_pointer("/env", variable->name).text,
                        "a secret value of %zu bytes is in too much ordinary text to be redacted; expected at least %d",
                        length, LITERAL_MIN);
            return error_hint(err, "leave out the mark, or use a longer value");
        }
        total += length;
        if (total > REQUEST_SECRETS_MAX)
            return error_field(err, word_pointer("/env", variable->name).text,
                               "secret values have more than %d bytes together, the most that is looked for in output",
                               REQUEST_SECRETS_MAX);
        if (!redactor->literals)
            redactor->literals = literals_new();
        if (!redactor->literals || !forms_add(redactor->literals, variable->value, length))
            return error_nomem(err);
    }
    return !redactor->literals || literals_finish(redactor->literals) ? 0 : error_nomem(err);
}

static void count(void *context, size_t rule)
{
    const struct place *place = context;
    place->redactor->counts[rule][place->where]++;
}

static bool make_streams(struct redactor *redactor)
{
    const struct redact_rules *rules = redactor->choice.rules;
    redactor->counts = calloc(rules->count, sizeof *redactor->counts);
    redactor->rows = calloc(rules->count * WHERES, sizeof *redactor->rows);
    if (!redactor->counts || !redactor->rows ||
        (rules->scratch && hs_clone_scratch(rules->scratch, &redactor->choice.scratch) != HS_SUCCESS))
        return false;
    for (unsigned i = 0; i < STREAMS; i++) {
        struct place *place = &redactor->places[i];
        place->redactor = redactor;
        place->where = i;
        place->stream = redact_stream_new(&redactor->choice, count, place);
        if (!place->stream)
            return false;
    }
    return true;
}

static bool has_work(const struct redact_choice *choice)
{
    for (unsigned i = 0; i < REDACT_CLASSES; i++)
        if (choice->classes[i])
            return true;
    for (unsigned i = 0; i < REDACT_AUTOMATA; i++)
        if (choice->literals[i])
            return true;
    return false;
}

static int open_redactor(const struct redact_rules *rules, const cordon_request *request, const enum sanitize *fallback,
                         struct redactor **redactor, cordon_error *err)
{
    struct redactor *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_nomem(err);
    opened->choice.rules = rules;
    atomic_fetch_add(&((struct redact_rules *)rules)->references, 1);
    int rc = fallback ? choose(&opened->choice, request, *fallback, err) : 0;
    if (rc == 0)
        rc = add_variables(opened, request, err);
    if (rc == 0) {
        opened->choice.literals[0] = rules->literals;
        opened->choice.literals[1] = opened->literals;
        redact_choice_prepare(&opened->choice);
        if (has_work(&opened->choice) && !make_streams(opened))
            rc = error_nomem(err);
    }
    if (rc < 0 || !has_work(&opened->choice)) {
        redactor_close(opened);
        opened = NULL;
    }
    if (rc == 0)
        *redactor = opened;
    return rc;
}

size_t redactor_bytes(const struct redactor *redactor)
{
    return redactor && redactor->literals ? literals_bytes(redactor->literals) : 0;
}

int redactor_open(const struct redact_rules *rules, const cordon_request *request, enum sanitize fallback,
                  struct redactor **redactor, cordon_error *err)
{
    return open_redactor(rules, request, &fallback, redactor, err);
}

int redactor_open_known(const struct redact_rules *rules, const cordon_request *request, struct redactor **redactor,
                        cordon_error *err)
{
    return open_redactor(rules, request, NULL, redactor, err);
}

void redactor_close(struct redactor *redactor)
{
    if (!redactor)
        return;
    for (unsigned i = 0; i < STREAMS; i++)
        redact_stream_free(redactor->places[i].stream);
    hs_free_scratch(redactor->choice.scratch);
    literals_free(redactor->literals);
    free(redactor->counts);
    free(redactor->rows);
    redact_rules_close((struct redact_rules *)redactor->choice.rules);
    free(redactor);
}

void redactor_feed(struct redactor *redactor, int stream, const void *bytes, size_t length, cordon_emit emit,
                   void *sink)
{
    redact_stream_feed(redactor->places[stream == 2 ? STREAM_STDERR : STREAM_STDOUT].stream, bytes, length, emit, sink);
}

void redactor_end(struct redactor *redactor, int stream, cordon_emit emit, void *sink)
{
    redact_stream_end(redactor->places[stream == 2 ? STREAM_STDERR : STREAM_STDOUT].stream, emit, sink);
}

static void append(void *sink, const void *bytes, size_t length)
{
    buf_append(sink, bytes, length);
}

static bool is_json(const char *bytes, size_t length)
{
    json_t *parsed = length ? value_parse(bytes, length) : NULL;
    json_decref(parsed);
    return parsed;
}

static char *json_text(const struct buf *clean)
{
    size_t length;
    auto_free char *text = utf8_repair(buf_text(clean), clean->length, &length);
    json_t *string = text ? json_stringn(text, length) : NULL;
    char *dumped = json_dumps(string, JSON_ENCODE_ANY);
    json_decref(string);
    return dumped;
}

/* A value is JSON, and a match may take a quote or a bracket of it along: what then is no JSON any more is told as a
 * string, so that the reader learns what is left of it. */
void redactor_text(struct redactor *redactor, const char *where, const void *bytes, size_t length, cordon_emit emit,
                   void *sink)
{
    struct place *place = &redactor->places[STREAM_TEXT];
    place->where = strcmp(where, "value") == 0 ? WHERE_VALUE : WHERE_FILE;
    if (place->where == WHERE_FILE) {
        redact_stream_feed(place->stream, bytes, length, emit, sink);
        redact_stream_end(place->stream, emit, sink);
        return;
    }
    auto_buf struct buf clean = {0};
    redact_stream_feed(place->stream, bytes, length, append, &clean);
    redact_stream_end(place->stream, append, &clean);
    auto_free char *text = is_json(bytes, length) && !is_json(clean.data, clean.length) ? json_text(&clean) : NULL;
    if (text)
        emit(sink, text, strlen(text));
    else if (clean.length && !clean.failed)
        emit(sink, clean.data, clean.length);
}

static void filter_output(void *context, int stream, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    if (length)
        redactor_feed(context, stream, bytes, length, emit, sink);
    else
        redactor_end(context, stream, emit, sink);
}

static void filter_text(void *context, const char *what, const void *bytes, size_t length, cordon_emit emit, void *sink)
{
    redactor_text(context, what, bytes, length, emit, sink);
}

cordon_filter redactor_filter(struct redactor *redactor)
{
    return (cordon_filter){.context = redactor, .output = filter_output, .text = filter_text};
}

size_t redactor_counts(const struct redactor *redactor, const struct redaction **rows)
{
    size_t filled = 0;
    for (size_t i = 0; i < redactor->choice.rules->count; i++)
        for (unsigned where = 0; where < WHERES; where++)
            if (redactor->counts[i][where])
                redactor->rows[filled++] = (struct redaction){redactor->choice.rules->rules[i].row.name,
                                                              where_names[where], redactor->counts[i][where]};
    *rows = redactor->rows;
    return filled;
}

json_t *redactor_counts_json(const struct redactor *redactor)
{
    const struct redaction *rows = NULL;
    size_t count = redactor ? redactor_counts(redactor, &rows) : 0;
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "rule", rows[i].rule, "stream", rows[i].where, "count",
                                              (json_int_t)rows[i].count));
    return list;
}

static int clean_text(struct redactor *redactor, const char *text, size_t length, struct buf *clean)
{
    buf_append(clean, "", 0);
    redactor_text(redactor, "file", text, length, append, clean);
    return clean->failed ? -1 : 0;
}

static int clean_members(struct redactor *redactor, json_t **object)
{
    json_t *made = json_object(), *value;
    const char *name;
    int code = made ? 0 : -1;
    json_object_foreach(*object, name, value)
    {
        auto_buf struct buf clean = {0};
        json_t *inner = json_incref(value);
        if (code == 0)
            code = clean_text(redactor, name, strlen(name), &clean);
        if (code == 0)
            code = redactor_json(redactor, &inner);
        if (code == 0)
            code = json_object_set(made, buf_text(&clean), inner);
        json_decref(inner);
    }
    json_decref(code == 0 ? *object : made);
    if (code == 0)
        *object = made;
    return code;
}

static int clean_items(struct redactor *redactor, json_t **array)
{
    json_t *made = json_array(), *value;
    size_t i;
    int code = made ? 0 : -1;
    json_array_foreach(*array, i, value)
    {
        json_t *inner = json_incref(value);
        if (code == 0)
            code = redactor_json(redactor, &inner);
        if (code == 0)
            code = json_array_append(made, inner);
        json_decref(inner);
    }
    json_decref(code == 0 ? *array : made);
    if (code == 0)
        *array = made;
    return code;
}

static int clean_string(struct redactor *redactor, json_t **string)
{
    auto_buf struct buf clean = {0};
    size_t length;
    if (clean_text(redactor, json_string_value(*string), json_string_length(*string), &clean) < 0)
        return -1;
    /* What is left of a character is none. */
    auto_free char *repaired = utf8_repair(buf_text(&clean), clean.length, &length);
    json_t *made = repaired ? json_stringn(repaired, length) : NULL;
    if (!made)
        return -1;
    json_decref(*string);
    *string = made;
    return 0;
}

int redactor_json(struct redactor *redactor, json_t **value)
{
    if (json_is_object(*value))
        return clean_members(redactor, value);
    if (json_is_array(*value))
        return clean_items(redactor, value);
    return json_is_string(*value) ? clean_string(redactor, value) : 0;
}
