/* What can be told of a pattern without matching it: where a match may begin, which bytes it may hold, and the class of
 * bytes that it goes on with for as long as they come. */
#ifndef OUTPUT_REDACT_SHAPE_H
#define OUTPUT_REDACT_SHAPE_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>

#define SHAPE_STARTS     16
#define SHAPE_START_SIZE 24

struct byte_set {
    bool has[256];
};

struct shape {
    char *head; /* the pattern without its repeated end: what the engine compiles */
    bool has_tail;
    struct byte_set tail;   /* a match goes on over all bytes of these that follow */
    struct byte_set within; /* no byte of a head is another */
    bool caseless;
    /* Every match begins with one of these; none: any byte of `within`. */
    char starts[SHAPE_STARTS][SHAPE_START_SIZE];
    size_t start_count;
    unsigned widest; /* head; UINT_MAX: no bound */
};

/* Refuses what the redactor could not follow through a stream; the error's text tells what and has no place in it. */
int shape_read(const char *pattern, struct shape *shape, cordon_error *err);
void shape_free(struct shape *shape);

/* The flags every pattern is compiled with. */
#define SHAPE_FLAGS (HS_FLAG_SOM_LEFTMOST | HS_FLAG_MULTILINE)

#endif
