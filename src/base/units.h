/* Sizes ("512m", "1g", "64k", bytes) and times ("5s", "300ms", "2m", milliseconds) as people write them. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

/* 0, or -1 with `*why` a static text: "is negative", "has an unknown unit 'q' (expected k, m, g or none)", … */
int units_parse_bytes(const char *text, int64_t *bytes, const char **why);
int units_parse_ms(const char *text, int64_t *ms, const char **why);
int units_parse_count(const char *text, int64_t *count, const char **why);
/* A share of processors such as "0.5", in thousandths. */
int units_parse_milli(const char *text, int64_t *milli, const char **why);

/* "512 MiB", "1.5 GiB", "300 ms", "5 s" into `text`; returns `text`. */
char *units_format_bytes(int64_t bytes, char *text, unsigned size);
char *units_format_ms(int64_t ms, char *text, unsigned size);

#endif
