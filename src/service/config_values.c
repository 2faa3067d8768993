/* Owns how the text of a setting becomes its value, by kind. Must not know any setting by name. Called by config_set()
 * and by the file reader; an error names the setting, what was given and what was expected. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "plan/word.h"
#include "service/config_settings.h"

#define DAY_MS INT64_C(86400000)

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "body_bytes is set like the 64-bit sizes");

static const struct {
    const char *expected;
    int (*parse)(const char *text, int64_t *value, const char **why);
} kinds[] = {
    [SETTING_TEXT] = {"a text", NULL},
    [SETTING_FLAG] = {"true or false", NULL},
    [SETTING_LIST] = {"a list of texts", NULL},
    [SETTING_COUNT] = {"a whole number", units_parse_count},
    [SETTING_COUNT64] = {"a whole number", units_parse_count},
    [SETTING_BYTES] = {"a size such as 64k, 512m or 1g", units_parse_bytes},
    [SETTING_MS] = {"a time such as 300ms, 30s or 5m", units_parse_ms},
    [SETTING_S] = {"a time such as 90s, 12h or 30d", NULL},
    [SETTING_STORE] = {"none, hash or full", NULL},
    [SETTING_LIMITS] = {"limits with their values, such as wall_ms: 60s", NULL},
};

static const struct {
    const char *text;
    bool value;
} truths[] = {{"true", true},   {"yes", true}, {"on", true},   {"1", true},
              {"false", false}, {"no", false}, {"off", false}, {"0", false}};

static const char *const keeps[] = {[STORE_KEEP_NONE] = "none", [STORE_KEEP_HASH] = "hash", [STORE_KEEP_FULL] = "full"};

const char *setting_expected(const struct setting *row)
{
    return kinds[row->kind].expected;
}

static void *member(struct config *config, const struct setting *row)
{
    return (char *)config + row->offset;
}

static int refuse(const struct setting *row, const char *given, const char *why, cordon_error *err)
{
    bool expected = strstr(why, "expected") == NULL;
    return error_set(err, CORDON_EINVAL, "config", "%s '%s' %s%s%s", row->name, word_show(given).text, why,
                     expected ? "; expected " : "", expected ? setting_expected(row) : "");
}

/* Seconds or days, which times of runs do not have; everything else as there. */
static int parse_seconds(const char *text, int64_t *ms, const char **why)
{
    size_t length = strlen(text);
    int64_t milli;
    if (length && isdigit((unsigned char)text[length - 1])) {
        int failed = units_parse_milli(text, &milli, why);
        *ms = failed ? 0 : milli;
        return failed;
    }
    if (!length || text[length - 1] != 'd')
        return units_parse_ms(text, ms, why);
    char number[24];
    snprintf(number, sizeof number, "%.*s", (int)(length - 1 < 20 ? length - 1 : 20), text);
    if (units_parse_milli(number, &milli, why) != 0)
        return -1;
    if (__builtin_mul_overflow(milli, DAY_MS / 1000, ms)) {
        *why = "is too large";
        return -1;
    }
    return 0;
}

static void format_bound(const struct setting *row, uint64_t bound, char *text, unsigned size)
{
    if (row->kind == SETTING_BYTES)
        units_format_bytes((int64_t)bound, text, size);
    else if (row->kind == SETTING_MS)
        units_format_ms((int64_t)bound, text, size);
    else
        snprintf(text, size, "%llu%s", (unsigned long long)bound, row->kind == SETTING_S ? " s" : "");
}

static int parse_number(const struct setting *row, const char *text, uint64_t *value, cordon_error *err)
{
    int64_t number;
    const char *why;
    /* A fraction without a unit would be cut silently. */
    if (strchr(text, '.') && isdigit((unsigned char)text[strlen(text) - 1]))
        return refuse(row, text, "is not a whole number", err);
    int failed =
        row->kind == SETTING_S ? parse_seconds(text, &number, &why) : kinds[row->kind].parse(text, &number, &why);
    if (failed)
        return refuse(row, text, why, err);
    *value = (uint64_t)(row->kind == SETTING_S ? number / 1000 : number);
    if (*value >= row->least && *value <= row->most)
        return 0;
    bool low = *value < row->least;
    char bound[40], range[80];
    format_bound(row, low ? row->least : row->most, bound, sizeof bound);
    snprintf(range, sizeof range, "is too %s; expected at %s %s", low ? "small" : "large", low ? "least" : "most",
             bound);
    return refuse(row, text, range, err);
}

static int set_number(struct config *config, const struct setting *row, const char *text, cordon_error *err)
{
    uint64_t value = 0;
    int failed = parse_number(row, text, &value, err);
    if (failed)
        return failed;
    if (row->kind == SETTING_COUNT)
        *(unsigned *)member(config, row) = (unsigned)value;
    else
        *(uint64_t *)member(config, row) = value;
    return 0;
}

static int set_flag(struct config *config, const struct setting *row, const char *text, cordon_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(truths); i++)
        if (!strcasecmp(text, truths[i].text)) {
            *(bool *)member(config, row) = truths[i].value;
            return 0;
        }
    return refuse(row, text, "is neither", err);
}

static int set_store(struct config *config, const struct setting *row, const char *text, cordon_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(keeps); i++)
        if (!strcmp(text, keeps[i])) {
            *(enum store_keep *)member(config, row) = (enum store_keep)i;
            return 0;
        }
    return refuse(row, text, "is not known", err);
}

static int check_item(const struct setting *row, const char *text, cordon_error *err)
{
    const char *why;
    if (strlen(text) > SETTING_TEXT_MAX)
        return refuse(row, text, "is longer than 4096 bytes", err);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return refuse(row, text, "holds a control character", err);
    return row->fits && !row->fits(text, &why) ? refuse(row, text, why, err) : 0;
}

static int set_one_text(struct config *config, const struct setting *row, const char *text, cordon_error *err)
{
    if (!*text && !row->may_be_empty)
        return error_set(err, CORDON_EINVAL, "config", "%s is empty; expected a value", row->name);
    int failed = *text ? check_item(row, text, err) : 0;
    if (failed)
        return failed;
    char *copy = strdup(text);
    if (!copy)
        return error_nomem(err);
    setting_clear(config, row);
    *(char **)member(config, row) = copy;
    return 0;
}

static int set_list(struct config *config, const struct setting *row, const char *const *items, size_t count,
                    cordon_error *err)
{
    int failed = 0;
    char **list = calloc(count + 1, sizeof *list);
    if (!list)
        return error_nomem(err);
    for (size_t i = 0; i < count && !failed; i++) {
        failed = *items[i] ? check_item(row, items[i], err)
                           : error_set(err, CORDON_EINVAL, "config", "%s has an empty item", row->name);
        if (!failed && !(list[i] = strdup(items[i])))
            failed = error_nomem(err);
    }
    if (!failed) {
        setting_clear(config, row);
        *(char ***)member(config, row) = list;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
    return failed;
}

/* "wall_ms=60s": `unlimited` is what a ceiling is when there is none. */
static int add_limit(const struct setting *row, const char *item, struct limits *limits, cordon_error *err)
{
    const char *names[LIMIT_COUNT], *equals = strchr(item, '=');
    char name[32], list[200];
    if (!equals)
        return refuse(row, item, "has no value; expected NAME=VALUE such as wall_ms=60s", err);
    snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
    enum limit limit = limit_from_name(name);
    for (int i = 0; i < LIMIT_COUNT; i++)
        names[i] = limit_name(i);
    if (limit == LIMIT_COUNT)
        return error_set(err, CORDON_EINVAL, "config", "%s: there is no limit '%s'; expected one of %s", row->name,
                         word_show(name).text, word_list(names, LIMIT_COUNT, list, sizeof list));
    if (limits->given & UINT32_C(1) << limit)
        return error_set(err, CORDON_EINVAL, "config", "%s: %s is given twice", row->name, name);
    if (!strcmp(equals + 1, "unlimited")) {
        limits->given |= UINT32_C(1) << limit;
        return 0;
    }
    cordon_error inner = {0};
    if (limit_parse(limit, equals + 1, limits, &inner) == 0)
        return 0;
    return error_set(err, CORDON_EINVAL, "config", "%s: %.300s", row->name, inner.text);
}

static int set_limits(struct config *config, const struct setting *row, const char *const *items, size_t count,
                      cordon_error *err)
{
    struct limits limits = {0};
    for (size_t i = 0; i < count; i++) {
        int failed = add_limit(row, items[i], &limits, err);
        if (failed)
            return failed;
    }
    *(struct limits *)member(config, row) = limits;
    return 0;
}

int setting_set_items(struct config *config, const struct setting *row, const char *const *items, size_t count,
                      cordon_error *err)
{
    if (count > SETTING_ITEMS_MAX)
        return error_set(err, CORDON_EINVAL, "config", "%s has %zu items; expected at most %d", row->name, count,
                         SETTING_ITEMS_MAX);
    return row->kind == SETTING_LIMITS ? set_limits(config, row, items, count, err)
                                       : set_list(config, row, items, count, err);
}

/* "a, b" as items; an empty text is the empty list. */
static int set_split(struct config *config, const struct setting *row, const char *text, cordon_error *err)
{
    char *items[SETTING_ITEMS_MAX + 1];
    size_t count = 0;
    auto_free char *copy = strdup(text);
    if (!copy)
        return error_nomem(err);
    char *rest = *copy ? copy : NULL;
    for (char *item; rest && (item = strsep(&rest, ",")) && count < ARRAY_LEN(items);) {
        item += strspn(item, " \t");
        size_t length = strlen(item);
        while (length && (item[length - 1] == ' ' || item[length - 1] == '\t'))
            item[--length] = '\0';
        items[count++] = item;
    }
    return setting_set_items(config, row, (const char *const *)items, count, err);
}

int setting_set_text(struct config *config, const struct setting *row, const char *text, cordon_error *err)
{
    switch (row->kind) {
    case SETTING_TEXT:
        return set_one_text(config, row, text, err);
    case SETTING_FLAG:
        return set_flag(config, row, text, err);
    case SETTING_STORE:
        return set_store(config, row, text, err);
    case SETTING_LIST:
    case SETTING_LIMITS:
        return set_split(config, row, text, err);
    default:
        return set_number(config, row, text, err);
    }
}

static size_t size_of(enum setting_kind kind)
{
    switch (kind) {
    case SETTING_TEXT:
    case SETTING_LIST:
        return sizeof(void *);
    case SETTING_FLAG:
        return sizeof(bool);
    case SETTING_COUNT:
        return sizeof(unsigned);
    case SETTING_STORE:
        return sizeof(enum store_keep);
    case SETTING_LIMITS:
        return sizeof(struct limits);
    default:
        return sizeof(uint64_t);
    }
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_list(char *const *a, char *const *b)
{
    for (; a && *a && b && *b; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return !(a && *a) && !(b && *b);
}

bool setting_equal(const struct config *a, const struct config *b, const struct setting *row)
{
    const char *of_a = (const char *)a + row->offset, *of_b = (const char *)b + row->offset;
    if (row->kind == SETTING_TEXT)
        return same_text(*(char *const *)of_a, *(char *const *)of_b);
    if (row->kind == SETTING_LIST)
        return same_list(*(char **const *)of_a, *(char **const *)of_b);
    if (row->kind == SETTING_LIMITS)
        return memcmp(((const struct limits *)of_a)->value, ((const struct limits *)of_b)->value,
                      sizeof((const struct limits *)of_a)->value) == 0;
    return memcmp(of_a, of_b, size_of(row->kind)) == 0;
}

void setting_swap(struct config *a, struct config *b, const struct setting *row)
{
    char kept[sizeof(struct limits)];
    memcpy(kept, member(a, row), size_of(row->kind));
    memcpy(member(a, row), member(b, row), size_of(row->kind));
    memcpy(member(b, row), kept, size_of(row->kind));
}

void setting_clear(struct config *config, const struct setting *row)
{
    if (row->kind == SETTING_TEXT) {
        free(*(char **)member(config, row));
        *(char **)member(config, row) = NULL;
    } else if (row->kind == SETTING_LIST) {
        char **list = *(char ***)member(config, row);
        for (char **item = list; item && *item; item++)
            free(*item);
        free(list);
        *(char ***)member(config, row) = NULL;
    }
}
