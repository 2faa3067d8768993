/* What a person sees of a batch: a bar while it runs, a table when it is over. */
#ifndef SERVICE_BATCH_SHOW_H
#define SERVICE_BATCH_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Figures of the results that ended alike. */
struct batch_row {
    char name[32];
    size_t count, walls_count, walls_capacity;
    double *walls; /* ms */
};

struct batch_counts {
    size_t total; /* requests in the input; 0: not known */
    size_t done, good, before, failed_before, changed;
    uint64_t begin_us;
    struct batch_row rows[24];
    size_t row_count;
};

/* Counts a result, which is a Result. Not safe from several threads. */
void batch_count(struct batch_counts *counts, const json_t *result);
void batch_counts_free(struct batch_counts *counts);

/* Draws the bar on standard error, over the one before. */
void batch_show_bar(const struct batch_counts *counts);
void batch_clear_bar(void);
void batch_show_table(FILE *stream, const struct batch_counts *counts);
/* The same figures as an object. */
json_t *batch_summary(const struct batch_counts *counts);

#endif
