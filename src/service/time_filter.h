/* Points in time as people name them for `cordon history`. */
#ifndef SERVICE_TIME_FILTER_H
#define SERVICE_TIME_FILTER_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stdint.h>

/* As in results: "2026-11-15T15:27:16.000Z". */
#define TIME_FILTER_BYTES 25

/* "90s", "2h", "3d", "1w" before `now_s`, or in UTC "2026-11-15" or "2026-11-15T15:27[:16][Z]" (a space may stand for
 * the T). With `end` a date is the beginning of the day after it, so that the day counts whole. */
int time_filter(const char *text, bool end, int64_t now_s, char time[TIME_FILTER_BYTES], cordon_error *err);

#endif
