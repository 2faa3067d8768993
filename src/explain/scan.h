/* Reading a program's messages with its language's error table. Inside src/explain only. */
#ifndef EXPLAIN_SCAN_H
#define EXPLAIN_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "explain/explain.h"

#define SCAN_LINE_MAX 2048

/* The end of stderr, cut into lines. */
struct scan_text {
    char *bytes;
    char **lines;
    size_t count;
};

/* What the table found; the strings are owned. */
struct finding {
    char *type, *message, *file;
    const char *category; /* borrowed from the table, or NULL */
    long line, column;
    size_t anchor; /* line of the text that told the type or the message */
    bool found;
};

/* 0, or negative without memory. */
int scan_split(const char *text, size_t length, struct scan_text *lines);
void scan_text_free(struct scan_text *lines);

int scan_find(const struct scan_text *lines, const struct manifest_notes *notes, const struct explain_input *input,
              struct finding *finding);
void finding_free(struct finding *finding);

#endif
