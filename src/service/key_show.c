/* Owns how API keys look in a list, and the names of scopes. Called by `cordon key`. */
#include "service/key_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "store/record.h"

static const struct {
    const char *name;
    uint32_t bit;
} scopes[] = {{"run", KEY_RUN}, {"session", KEY_SESSION}, {"read", KEY_READ}, {"admin", KEY_ADMIN}};

uint32_t key_scope_bit(const char *word, size_t length)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (strlen(scopes[i].name) == length && !strncmp(word, scopes[i].name, length))
            return scopes[i].bit;
    return 0;
}

static void put_scopes(struct buf *text, uint32_t bits, const char *between)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (bits & scopes[i].bit)
            buf_printf(text, "%s%s", text->length ? between : "", scopes[i].name);
}

static json_t *scopes_json(uint32_t bits)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (bits & scopes[i].bit)
            json_array_append_new(list, json_string(scopes[i].name));
    return list;
}

static json_t *count_json(uint64_t count)
{
    return count ? json_integer((json_int_t)count) : json_null();
}

static json_t *time_json(uint64_t seconds)
{
    char text[RECORD_TIME];
    record_time(seconds, text);
    return seconds ? json_string(text) : json_null();
}

static json_t *word_json(const char *word)
{
    return *word ? json_string(word) : json_null();
}

static json_t *ceilings_json(const struct limits *limits)
{
    json_t *object = json_object();
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits->value[i])
            json_object_set_new(object, limit_name(i),
                                limit_kind(i) == LIMIT_KIND_SHARE ? json_real((double)limits->value[i] / 1000)
                                                                  : json_integer(limits->value[i]));
    return object;
}

static json_t *key_json(const struct api_key *key)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "id", key->id, "name", key->name,
                     "scopes", scopes_json(key->scopes), "concurrent", count_json(key->concurrent), "per_minute",
                     count_json(key->per_minute), "cpu_s_per_day", count_json(key->cpu_s_per_day), "ceilings",
                     ceilings_json(&key->ceilings), "isolation", word_json(key->isolation), "network",
                     word_json(key->network), "fresh", key->fresh, "created_at", time_json(key->created_s),
                     "expires_at", time_json(key->expires_s));
}

int key_show_json(const struct api_key *keys, size_t count)
{
    auto_json json_t *answer = json_pack("{s:[]}", "items");
    for (size_t i = 0; i < count; i++)
        json_array_append_new(json_object_get(answer, "items"), key_json(&keys[i]));
    auto_free char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(12));
    return text ? report_json_text(text) : EXIT_OWN_FAILURE;
}

enum { COLUMN_ID, COLUMN_NAME, COLUMN_SCOPES, COLUMN_BOUNDS, COLUMN_EXPIRES, COLUMN_COUNT };

static void put_bounds(struct buf *text, const struct api_key *key)
{
    const struct {
        uint64_t value;
        const char *unit;
    } counts[] = {{key->concurrent, "at a time"},
                  {key->per_minute, "a minute"},
                  {key->cpu_s_per_day, "s of processor time a day"}};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (counts[i].value)
            buf_printf(text, "%s%" PRIu64 " %s", text->length ? ", " : "", counts[i].value, counts[i].unit);
    auto_json json_t *ceilings = ceilings_json(&key->ceilings);
    const char *name;
    const json_t *value;
    json_object_foreach(ceilings, name, value)
        buf_printf(text, "%s%s %.10g", text->length ? ", " : "", name, json_number_value(value));
    if (key->fresh)
        buf_printf(text, "%sfresh", text->length ? ", " : "");
}

static void fill_row(struct cell_text *row, struct buf made[3], const struct api_key *key)
{
    char expires[RECORD_TIME];
    bool over = key->expires_s && key->expires_s <= (uint64_t)time(NULL);
    put_scopes(&made[0], key->scopes, ",");
    put_bounds(&made[1], key);
    record_time(key->expires_s, expires);
    buf_puts(&made[2], key->expires_s ? expires : "never");
    row[COLUMN_ID] = (struct cell_text){key->id, TINT_BOLD};
    row[COLUMN_NAME] = (struct cell_text){key->name, TINT_NONE};
    row[COLUMN_SCOPES] = (struct cell_text){buf_text(&made[0]), TINT_NONE};
    row[COLUMN_BOUNDS] = (struct cell_text){made[1].length ? made[1].data : "none", TINT_NONE};
    row[COLUMN_EXPIRES] = (struct cell_text){buf_text(&made[2]), over ? TINT_BAD : TINT_NONE};
}

int key_show_table(const struct api_key *keys, size_t count)
{
    static const char *const heading[COLUMN_COUNT] = {"ID", "NAME", "SCOPES", "BOUNDS", "EXPIRES"};
    auto_free struct cell_text *cells = calloc((count + 1) * COLUMN_COUNT, sizeof *cells);
    auto_free struct buf *made = calloc(count * 3 + 1, sizeof *made);
    if (!cells || !made)
        return EXIT_OWN_FAILURE;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        cells[i] = (struct cell_text){heading[i], TINT_DIM};
    for (size_t i = 0; i < count; i++)
        fill_row(cells + (i + 1) * COLUMN_COUNT, made + i * 3, &keys[i]);
    terminal_table(stdout, cells, COLUMN_COUNT, count + 1);
    for (size_t i = 0; i < count * 3; i++)
        buf_free(&made[i]);
    return 0;
}
