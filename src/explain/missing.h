/* Hints for what a program looked for and did not find. Inside src/explain only. */
#ifndef EXPLAIN_MISSING_H
#define EXPLAIN_MISSING_H

#include <stdbool.h>

#include "explain/explain.h"

/* What to do about the module that the message misses, as an owned string; NULL when it misses none. */
char *missing_module_hint(const struct manifest_notes *notes, const char *message);
/* The same for a module that is there, but behind a file of the program's own that has its name. */
char *hidden_module_hint(const struct explain_input *input, const char *message);
/* What to do about the file or directory that `said` ("TYPE: MESSAGE") misses, as an owned string; NULL when it misses
 * none. `compiling`: the message is a compiler's, so the file is a header or a source. */
char *missing_file_hint(const char *said, bool compiling);

#endif
