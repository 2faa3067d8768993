/* Owns the table of limits: names, kinds, bounds, profiles. Pure; called while a request is built and when it is
 * resolved into a plan. Must not know how a limit is enforced. */
#include "plan/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "plan/word.h"

#define KIB INT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define TIB (GIB * 1024)
#define DAY (INT64_C(24) * 3600 * 1000)

enum { LIGHTWEIGHT, STANDARD, HEAVY, PROFILE_COUNT };

static const char *const profile_names[PROFILE_COUNT] = {"lightweight", "standard", "heavy"};

/* `least` is what the cell itself needs to start and still blame the program, not Cordon, for the end of a run. `most`
 * catches a slipped unit (memory given in bytes times 1024) before the kernel rounds it to "no limit". */
static const struct {
    const char *name;
    enum limit_kind kind;
    bool unlimited; /* harmless to the host when absent: other limits still bound the run */
    int64_t least, most;
    int64_t profile[PROFILE_COUNT]; /* 0: follows disk_bytes */
    int64_t compile;
} table[LIMIT_COUNT] = {
    [LIMIT_WALL_MS] = {"wall_ms", LIMIT_KIND_TIME, true, 1, 30 * DAY, {5000, 15000, 30000}, 60000},
    [LIMIT_CPU_MS] = {"cpu_ms", LIMIT_KIND_TIME, true, 1, 30 * DAY, {5000, 15000, 30000}, 60000},
    [LIMIT_CPUS] = {"cpus", LIMIT_KIND_SHARE, true, 10, 4096000, {1000, 1000, 2000}, 2000},
    [LIMIT_MEMORY_BYTES] =
        {"memory_bytes", LIMIT_KIND_BYTES, false, 4 * MIB, 16 * TIB, {128 * MIB, 512 * MIB, GIB}, GIB},
    [LIMIT_PROCESSES] = {"processes", LIMIT_KIND_COUNT, false, 1, 1 << 20, {25, 100, 200}, 200},
    [LIMIT_DISK_BYTES] =
        {"disk_bytes", LIMIT_KIND_BYTES, false, 4 * KIB, 16 * TIB, {64 * MIB, 256 * MIB, 512 * MIB}, 512 * MIB},
    [LIMIT_INODES] =
        {"inodes", LIMIT_KIND_COUNT, false, 16, INT64_C(1) << 30, {8 * KIB, 32 * KIB, 128 * KIB}, 128 * KIB},
    [LIMIT_OPEN_FILES] = {"open_files", LIMIT_KIND_COUNT, false, 8, 1 << 20, {256, 1024, 4096}, 4096},
    [LIMIT_FILE_BYTES] = {"file_bytes", LIMIT_KIND_BYTES, true, 1, 16 * TIB, {0, 0, 0}, 512 * MIB},
    [LIMIT_OUTPUT_BYTES] = {"output_bytes", LIMIT_KIND_BYTES, true, 1, 16 * GIB, {MIB, MIB, 4 * MIB}, MIB},
};

static const struct {
    const char *expected;
    int (*parse)(const char *text, int64_t *value, const char **why);
} kinds[] = {
    [LIMIT_KIND_TIME] = {"a time such as 5s or 300ms", units_parse_ms},
    [LIMIT_KIND_SHARE] = {"a number of processors such as 0.5", units_parse_milli},
    [LIMIT_KIND_BYTES] = {"a size such as 64k, 512m or 1g", units_parse_bytes},
    [LIMIT_KIND_COUNT] = {"a whole number", units_parse_count},
};

const char *limit_name(enum limit limit)
{
    return limit < LIMIT_COUNT ? table[limit].name : "none";
}

enum limit_kind limit_kind(enum limit limit)
{
    return limit < LIMIT_COUNT ? table[limit].kind : LIMIT_KIND_COUNT;
}

enum limit limit_from_name(const char *name)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (!strcmp(table[i].name, name))
            return (enum limit)i;
    return LIMIT_COUNT;
}

static char *format_value(enum limit limit, int64_t value, char *text, unsigned size)
{
    switch (table[limit].kind) {
    case LIMIT_KIND_TIME:
        return units_format_ms(value, text, size);
    case LIMIT_KIND_BYTES:
        return units_format_bytes(value, text, size);
    case LIMIT_KIND_SHARE:
        snprintf(text, size, "%lld.%03lld", (long long)(value / 1000), (long long)(value % 1000));
        return text;
    case LIMIT_KIND_COUNT:
        break;
    }
    snprintf(text, size, "%lld", (long long)value);
    return text;
}

static int refuse(enum limit limit, const char *given, const char *why, cordon_error *err)
{
    struct word_pointer field = word_pointer("/limits", table[limit].name);
    /* The unit errors already name what was expected. */
    bool expected = strstr(why, "expected") == NULL;
    return error_field(err, field.text, "%s '%s' %s%s%s", table[limit].name, word_show(given).text, why,
                       expected ? "; expected " : "", expected ? kinds[table[limit].kind].expected : "");
}

static int store(enum limit limit, const char *given, int64_t value, struct limits *limits, cordon_error *err)
{
    char bound[40], why[120];
    if (value == 0)
        return refuse(limit, given, "is zero", err);
    if (value < table[limit].least || value > table[limit].most) {
        bool low = value < table[limit].least;
        format_value(limit, low ? table[limit].least : table[limit].most, bound, sizeof bound);
        snprintf(why, sizeof why, "is %s; expected at %s %s", low ? "too small" : "too large", low ? "least" : "most",
                 bound);
        return refuse(limit, given, why, err);
    }
    limits->value[limit] = value;
    limits->given |= UINT32_C(1) << limit;
    return 0;
}

/* Without a unit a fraction would be cut to a whole byte, millisecond or process, silently. */
static bool is_bare_fraction(const char *text)
{
    const char *point = strchr(text, '.');
    return point && point[1 + strspn(point + 1, "0123456789")] == '\0';
}

int limit_parse(enum limit limit, const char *text, struct limits *limits, cordon_error *err)
{
    if (limit >= LIMIT_COUNT)
        return error_field(err, "/limits", "there is no such limit");
    if (!strcmp(text, "unlimited")) {
        if (!table[limit].unlimited)
            return refuse(limit, text, "is not allowed: an operator must allow it", err);
        limits->value[limit] = LIMIT_UNLIMITED;
        limits->given |= UINT32_C(1) << limit;
        return 0;
    }
    enum limit_kind kind = table[limit].kind;
    int64_t value;
    const char *why;
    if (kinds[kind].parse(text, &value, &why) != 0)
        return refuse(limit, text, why, err);
    if (kind != LIMIT_KIND_SHARE && is_bare_fraction(text))
        return refuse(limit, text, "is not a whole number", err);
    return store(limit, text, value, limits, err);
}

int limit_set_number(enum limit limit, double number, struct limits *limits, cordon_error *err)
{
    if (limit >= LIMIT_COUNT)
        return error_field(err, "/limits", "there is no such limit");
    char given[40];
    snprintf(given, sizeof given, "%.15g", number);
    if (!isfinite(number))
        return refuse(limit, given, "is not a finite number", err);
    if (number < 0)
        return refuse(limit, given, "is negative", err);
    bool share = table[limit].kind == LIMIT_KIND_SHARE;
    /* The cap is far above every bound of the table, and still exact as an integer. */
    double scaled = share ? number * 1000 + 0.5 : number;
    int64_t value = scaled < 9e15 ? (int64_t)scaled : INT64_C(9000000000000000);
    if (!share && scaled < 9e15 && (double)value != scaled)
        return refuse(limit, given, "is not a whole number", err);
    return store(limit, given, value, limits, err);
}

int limits_complete(struct limits *limits, const char *profile, cordon_error *err)
{
    size_t row = STANDARD;
    if (profile) {
        for (row = 0; row < PROFILE_COUNT && strcmp(profile_names[row], profile) != 0; row++)
            ;
        if (row == PROFILE_COUNT)
            return error_field(err, "/profile", "there is no profile '%s' (available: lightweight, standard, heavy)",
                               word_show(profile).text);
    }
    struct limits full = *limits;
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (!(full.given & UINT32_C(1) << i))
            full.value[i] = table[i].profile[row];

    /* The work directory is tmpfs: its pages are charged to the run's memory. */
    int64_t memory = full.value[LIMIT_MEMORY_BYTES], *disk = &full.value[LIMIT_DISK_BYTES];
    if (full.given & UINT32_C(1) << LIMIT_DISK_BYTES) {
        if (*disk > memory) {
            char disk_text[40], memory_text[40];
            error_field(err, "/limits/disk_bytes", "disk_bytes (%s) is above memory_bytes (%s), in which it counts",
                        units_format_bytes(*disk, disk_text, sizeof disk_text),
                        units_format_bytes(memory, memory_text, sizeof memory_text));
            return error_hint(err, "raise memory_bytes or lower disk_bytes");
        }
    } else if (*disk > memory / 2)
        *disk = memory / 2;
    if (!(full.given & UINT32_C(1) << LIMIT_FILE_BYTES))
        full.value[LIMIT_FILE_BYTES] = *disk;
    *limits = full;
    return 0;
}

void limits_for_compile(struct limits *limits)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        limits->value[i] = table[i].compile;
    limits->given = 0;
}
