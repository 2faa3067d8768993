/* What a caller gets to see: bytes of programs as text for JSON, through the caller's filter and cut to a length. */
#ifndef JUDGE_SHOW_H
#define JUDGE_SHOW_H

#include <cordon/result.h>
#include <cordon/run.h>
#include <jansson.h>

#include "judge/compare.h"

/* Through the filter (NULL: as they are), as stream 1 or 2, or with 0 as a text by itself. */
void show_filter(const cordon_filter *filter, int stream, struct slice bytes, struct buf *out);
/* At most `most` bytes of it, valid UTF-8, with a word on what was cut. */
json_t *show_text(struct slice bytes, size_t most);
/* A result of a run without filter, changed into what a run with it would have told. -1 when memory is out. */
int show_result(cordon_result *result, const cordon_filter *filter);

#endif
