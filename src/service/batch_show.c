/* Owns the figures of a batch and their looks. Called by cmd_batch.c. */
#include "service/batch_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/report.h"
#include "cli/terminal.h"

#define BAR_WIDTH 24

/* A program may end well and give wrong answers. */
static const char *name_of(const json_t *result)
{
    const char *status = member_text(result, "status");
    if (!status)
        return "internal_error";
    if (!strcmp(status, "ok") && !json_is_true(json_object_get(result, "success")))
        return "tests failed";
    return status;
}

static struct batch_row *row_of(struct batch_counts *counts, const char *name)
{
    for (size_t i = 0; i < counts->row_count; i++)
        if (!strcmp(counts->rows[i].name, name))
            return &counts->rows[i];
    if (counts->row_count == ARRAY_LEN(counts->rows))
        return &counts->rows[counts->row_count - 1];
    struct batch_row *row = &counts->rows[counts->row_count++];
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

static void add_wall(struct batch_row *row, double wall_ms)
{
    if (row->walls_count == row->walls_capacity) {
        size_t capacity = row->walls_capacity ? 2 * row->walls_capacity : 64;
        double *walls = realloc(row->walls, capacity * sizeof *walls);
        if (!walls)
            return;
        row->walls = walls;
        row->walls_capacity = capacity;
    }
    row->walls[row->walls_count++] = wall_ms;
}

void batch_count(struct batch_counts *counts, const json_t *result)
{
    struct batch_row *row = row_of(counts, name_of(result));
    const json_t *wall = json_object_get(json_object_get(result, "usage"), "wall_ms");
    counts->done++;
    counts->good += json_is_true(json_object_get(result, "success"));
    row->count++;
    if (json_is_number(wall))
        add_wall(row, json_number_value(wall));
}

void batch_counts_free(struct batch_counts *counts)
{
    for (size_t i = 0; i < counts->row_count; i++)
        free(counts->rows[i].walls);
    counts->row_count = 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest value that so large a part does not exceed; -1 when there is none. */
static double percentile(const struct batch_row *row, double part)
{
    if (!row->walls_count)
        return -1;
    qsort(row->walls, row->walls_count, sizeof *row->walls, compare_doubles);
    size_t at = (size_t)(part * (double)row->walls_count);
    return row->walls[at < row->walls_count ? at : row->walls_count - 1];
}

static double seconds_of(const struct batch_counts *counts)
{
    return (double)(clock_us() - counts->begin_us) / 1e6;
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void put_time(char *text, size_t size, double seconds)
{
    unsigned long whole = (unsigned long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, size, "%lu:%02lu:%02lu", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, size, "%lu:%02lu", whole / 60, whole % 60);
}

void batch_show_bar(const struct batch_counts *counts)
{
    char line[256], bar[BAR_WIDTH + 3] = "", left[32] = "";
    double seconds = seconds_of(counts), rate = seconds > 0 ? (double)counts->done / seconds : 0;
    size_t finished = counts->done + counts->before;
    if (counts->total) {
        size_t filled = finished * BAR_WIDTH / counts->total;
        bar[0] = '[';
        for (size_t i = 0; i < BAR_WIDTH; i++)
            bar[i + 1] = i < filled ? '#' : '.';
        bar[BAR_WIDTH + 1] = ']';
        if (rate > 0 && finished <= counts->total)
            put_time(left, sizeof left, (double)(counts->total - finished) / rate);
    }
    int used = counts->total ? snprintf(line, sizeof line, "%s %zu/%zu", bar, finished, counts->total)
                             : snprintf(line, sizeof line, "%zu", finished);
    snprintf(line + used, sizeof line - (size_t)used, "  %.0f/s  ok %zu  failed %zu%s%s", rate, counts->good,
             counts->done - counts->good, *left ? "  left " : "", left);
    fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, line);
    fflush(stderr);
}

void batch_clear_bar(void)
{
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

enum { STATUS, COUNT, P50, P99, COLUMNS };

void batch_show_table(FILE *stream, const struct batch_counts *counts)
{
    static const struct cell_text head[COLUMNS] = {
        {"status", TINT_BOLD}, {"count", TINT_BOLD}, {"p50 ms", TINT_BOLD}, {"p99 ms", TINT_BOLD}};
    struct cell_text cells[(ARRAY_LEN(counts->rows) + 1) * COLUMNS] = {{0}};
    char texts[ARRAY_LEN(counts->rows)][3][32];
    memcpy(cells, head, sizeof head);
    for (size_t i = 0; i < counts->row_count; i++) {
        const struct batch_row *row = &counts->rows[i];
        double values[] = {percentile(row, 0.5), percentile(row, 0.99)};
        struct cell_text *line = &cells[(i + 1) * COLUMNS];
        snprintf(texts[i][0], sizeof texts[i][0], "%zu", row->count);
        for (int j = 0; j < 2; j++)
            snprintf(texts[i][j + 1], sizeof texts[i][j + 1], values[j] < 0 ? "-" : "%.1f", values[j]);
        line[STATUS] = (struct cell_text){row->name, strcmp(row->name, "ok") ? TINT_BAD : TINT_GOOD};
        for (int j = 0; j < 3; j++)
            line[COUNT + j].text = texts[i][j];
    }
    if (counts->row_count)
        terminal_table(stream, cells, COLUMNS, counts->row_count + 1);
    double seconds = seconds_of(counts);
    fprintf(stream, "%zu of %zu ok in %.1f s (%.0f/s)", counts->good, counts->done, seconds,
            seconds > 0 ? (double)counts->done / seconds : 0);
    if (counts->before)
        fprintf(stream, ", %zu done before", counts->before);
    if (counts->failed_before)
        fprintf(stream, ", of which %zu had failed", counts->failed_before);
    if (counts->changed)
        fprintf(stream, ", %zu run again because the request was changed", counts->changed);
    fputc('\n', stream);
}

json_t *batch_summary(const struct batch_counts *counts)
{
    json_t *statuses = json_object();
    for (size_t i = 0; i < counts->row_count; i++) {
        const struct batch_row *row = &counts->rows[i];
        double p50 = percentile(row, 0.5), p99 = percentile(row, 0.99);
        json_object_set_new(statuses, row->name,
                            json_pack("{s:I, s:o, s:o}", "count", (json_int_t)row->count, "p50_ms",
                                      p50 < 0 ? json_null() : json_real(p50), "p99_ms",
                                      p99 < 0 ? json_null() : json_real(p99)));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "done", (json_int_t)counts->done, "ok",
                     (json_int_t)counts->good, "failed", (json_int_t)(counts->done - counts->good), "done_before",
                     (json_int_t)counts->before, "failed_before", (json_int_t)counts->failed_before, "changed",
                     (json_int_t)counts->changed, "seconds", seconds_of(counts), "statuses", statuses);
}
