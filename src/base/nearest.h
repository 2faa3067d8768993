/* How far apart two names are: for "did you mean". */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* Beyond this a name is another word, not a slip of the finger. */
#define NEAREST_MAX 2

/* Letters to add, drop or replace, ignoring case; a swap of neighbours counts once. Compares the first 40 bytes. */
unsigned nearest_distance(const char *a, const char *b);

#endif
