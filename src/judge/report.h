/* What a test framework said of its tests, in the forms in which frameworks say it. Pure. The text comes out of a cell:
 * it may be anything. */
#ifndef JUDGE_REPORT_H
#define JUDGE_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "judge/compare.h"

enum report_format {
    REPORT_LINES, /* an object a line, as the runners in languages/tests write it */
    REPORT_GO,    /* go test -json */
    REPORT_TAP
};

/* More tests than these are counted and not shown. */
#define REPORT_ROWS_MAX 10000

struct report {
    json_t *rows; /* objects with name, status, message, wall_ms; owned */
    size_t passed, failed, skipped;
    bool missing; /* the runner says that the framework is not installed */
};

/* -1 when memory is out. */
int report_read(enum report_format format, struct slice text, struct report *report);
void report_free(struct report *report);

#endif
