/* The name under which the result of a compile step is kept: a hash over everything the result depends on. */
#ifndef ENGINE_COMPILE_KEY_H
#define ENGINE_COMPILE_KEY_H

#include <stddef.h>

#include "base/sha256.h"
#include "plan/plan.h"

struct compile_key {
    uint8_t bytes[SHA256_BYTES];
};

struct compile_key_input {
    const char *tenant; /* NULL is one too, and not "" */
    const char *language;
    const char *environment;
    const struct plan_source *plan; /* command, /etc names, limits, and files with their content */
    const char *const *outputs;     /* globs of what is taken */
    size_t outputs_count;
    const char *const *tools;   /* NULL-terminated: the compiler's files, each of which must be there */
    const char *const *markers; /* NULL-terminated: files that change with what is installed; may be absent */
};

/* Files of a host that change whenever something is installed: headers, libraries and the parts of a compiler that are
 * not the file one calls. */
extern const char *const compile_key_markers[];

/* 0, or -1 when the compiler cannot be told. */
int compile_key_make(const struct compile_key_input *input, struct compile_key *key);

#endif
