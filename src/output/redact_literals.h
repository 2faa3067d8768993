/* Known values, looked for all at once in a stream (Aho and Corasick). */
#ifndef OUTPUT_REDACT_LITERALS_H
#define OUTPUT_REDACT_LITERALS_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct literals;

/* A value shorter than this is in too much of ordinary text. */
#define LITERAL_MIN 4

/* NULL when memory is out. */
struct literals *literals_new(void);
/* False when memory is out. Texts shorter than LITERAL_MIN are left out. */
bool literals_add(struct literals *literals, const void *bytes, size_t length);
/* After the last one and before the first scan. */
bool literals_finish(struct literals *literals);
/* Wipes what it holds. */
void literals_free(struct literals *literals);
size_t literals_bytes(const struct literals *literals);
size_t literals_longest(const struct literals *literals);

typedef void (*literals_found)(void *context, uint64_t from, uint64_t to);

/* Goes on from `state` (0 at a stream's beginning) over bytes that begin at `offset`; at each end of a literal the
 * longest one is reported. Returns the new state. */
uint32_t literals_scan(const struct literals *literals, uint32_t state, const void *bytes, size_t length,
                       uint64_t offset, literals_found found, void *context);
/* How many of the bytes seen last may be the beginning of a literal. */
size_t literals_depth(const struct literals *literals, uint32_t state);

/* Adds a secret in every form it is looked for in: docs/REDACTION.md lists them. */
bool forms_add(struct literals *literals, const char *value, size_t length);

#endif
