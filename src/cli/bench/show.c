/* The rows of a benchmark as a table for people and as JSON for programs. Called by cmd_bench(). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/bench/bench.h"
#include "cli/terminal.h"

#define BASE_NAME  "bubblewrap"
#define TEXT_SIZE  24
#define COLUMNS_AT 8 /* before those of the rates */

static const struct row *base_of(const struct row *rows, size_t count, const struct row *row)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(rows[i].name, BASE_NAME) && !strcmp(rows[i].workload, row->workload))
            return &rows[i];
    return NULL;
}

static double ratio(double own, double base)
{
    return own > 0 && base > 0 ? own / base : 0;
}

/* Thousandths, as nobody measures more. */
static json_t *number_or_null(double value, bool valid)
{
    return valid ? json_real(round(value * 1000) / 1000) : json_null();
}

static void set_percentiles(json_t *object, const char *prefix, const struct percentiles *values)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {{"p50_ms", values->p50_ms}, {"p90_ms", values->p90_ms}, {"p99_ms", values->p99_ms}};
    char name[32];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        snprintf(name, sizeof name, "%s%s", prefix, fields[i].name);
        json_object_set_new(object, name, number_or_null(fields[i].value, values->runs));
    }
    snprintf(name, sizeof name, "%sruns", prefix);
    json_object_set_new(object, name, json_integer((json_int_t)values->runs));
}

static json_t *row_json(const struct row *row, const struct row *base, const struct settings *settings)
{
    json_t *object = json_pack("{s:s, s:s}", "name", row->name, "workload", row->workload);
    set_percentiles(object, "", &row->packed);
    set_percentiles(object, "gap_", &row->gapped);
    json_object_set_new(object, "rate_2", json_null());
    json_object_set_new(object, "rate_8", json_null());
    for (size_t k = 0; k < settings->worker_count; k++) {
        char name[32];
        snprintf(name, sizeof name, "rate_%u", settings->workers[k]);
        json_object_set_new(object, name, number_or_null(row->rate[k], row->rate[k] > 0));
    }
    double to_base = base ? ratio(row->packed.p50_ms, base->packed.p50_ms) : 0;
    double gap_to_base = base ? ratio(row->gapped.p50_ms, base->gapped.p50_ms) : 0;
    json_object_set_new(object, "to_bubblewrap", number_or_null(to_base, to_base > 0));
    json_object_set_new(object, "gap_to_bubblewrap", number_or_null(gap_to_base, gap_to_base > 0));
    json_object_set_new(object, "unaccounted_us", number_or_null(row->unaccounted_us, row->accounted));
    json_object_set_new(object, "warm_share", number_or_null(row->warm_share, row->accounted));
    json_object_set_new(object, "errors", json_integer((json_int_t)row->errors));
    json_object_set_new(object, "error", row->errors ? json_string(row->why) : json_null());
    return object;
}

json_t *show_rows(const struct row *rows, size_t count, const struct settings *settings)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, row_json(&rows[i], base_of(rows, count, &rows[i]), settings));
    return array;
}

/* A table being filled: cells point into `texts`. */
struct table {
    struct cell_text *cells;
    char (*texts)[TEXT_SIZE];
    size_t columns, used;
};

static void put(struct table *table, enum tint tint, const char *text)
{
    snprintf(table->texts[table->used], TEXT_SIZE, "%s", text);
    table->cells[table->used] = (struct cell_text){table->texts[table->used], tint};
    table->used++;
}

static void put_number(struct table *table, enum tint tint, int width, double value)
{
    char text[TEXT_SIZE];
    if (value > 0)
        snprintf(text, sizeof text, "%*.2f", width, value);
    else
        snprintf(text, sizeof text, "%*s", width, "-");
    put(table, tint, text);
}

static void put_heading(struct table *table, const struct settings *settings)
{
    static const char *const words[COLUMNS_AT] = {"WORKLOAD", "RUNNER", " P50 ms", " P90 ms",
                                                  " P99 ms",  "/BWRAP", "GAP P50", "/BWRAP"};
    char text[TEXT_SIZE];
    for (size_t i = 0; i < COLUMNS_AT; i++)
        put(table, TINT_DIM, words[i]);
    for (size_t k = 0; k < settings->worker_count; k++) {
        snprintf(text, sizeof text, "%3ux /s", settings->workers[k]);
        put(table, TINT_DIM, text);
        put(table, TINT_DIM, "/BWRAP");
    }
    put(table, TINT_DIM, "ERRORS");
}

static void put_row(struct table *table, const struct row *row, const struct row *base, bool first,
                    const struct settings *settings)
{
    static const struct row nothing;
    bool own = !strncmp(row->name, "cordon", 6);
    char errors[TEXT_SIZE];
    if (!base)
        base = &nothing;
    put(table, TINT_BOLD, first ? row->workload : "");
    put(table, own ? TINT_GOOD : TINT_NONE, row->name);
    put_number(table, TINT_BOLD, 7, row->packed.p50_ms);
    put_number(table, TINT_NONE, 7, row->packed.p90_ms);
    put_number(table, TINT_NONE, 7, row->packed.p99_ms);
    put_number(table, TINT_DIM, 6, ratio(row->packed.p50_ms, base->packed.p50_ms));
    put_number(table, TINT_BOLD, 7, row->gapped.p50_ms);
    put_number(table, TINT_DIM, 6, ratio(row->gapped.p50_ms, base->gapped.p50_ms));
    for (size_t k = 0; k < settings->worker_count; k++) {
        put_number(table, TINT_BOLD, 7, row->rate[k]);
        put_number(table, TINT_DIM, 6, ratio(row->rate[k], base->rate[k]));
    }
    snprintf(errors, sizeof errors, "%6zu", row->errors);
    put(table, row->errors ? TINT_BAD : TINT_DIM, errors);
}

void show_table(const struct row *rows, size_t count, const struct settings *settings)
{
    struct table table = {.columns = COLUMNS_AT + 2 * settings->worker_count + 1};
    auto_free struct cell_text *cells = calloc((count + 1) * table.columns, sizeof *cells);
    auto_free void *texts = calloc((count + 1) * table.columns, TEXT_SIZE);
    if (!cells || !texts) {
        terminal_say("out of memory");
        return;
    }
    table.cells = cells;
    table.texts = texts;
    put_heading(&table, settings);
    for (size_t i = 0; i < count; i++)
        put_row(&table, &rows[i], base_of(rows, count, &rows[i]),
                !i || strcmp(rows[i].workload, rows[i - 1].workload) != 0, settings);
    terminal_table(stdout, cells, table.columns, count + 1);
}
