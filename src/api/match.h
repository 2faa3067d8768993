/* Reading what stands in a request's line and headers. Pure functions. */
#ifndef API_MATCH_H
#define API_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_BYTES 32

/* "{id}" in the pattern stands for ID_BYTES hexadecimal digits, which are copied. */
bool match_path(const char *pattern, const char *path, char id[ID_BYTES + 1]);
/* Decimal digits and nothing else. */
bool match_number(const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* Which of the types an Accept header prefers; on a tie the one it names first. 0 without a header, and when it takes
 * none of them: an answer that was not asked for says more than none. */
size_t match_accept(const char *accept, const char *const *types, size_t count);

#endif
