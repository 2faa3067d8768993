/* What a command line names on the host: files to read, pairs, mounts, and the language of a file name. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <cordon/engine.h>
#include <stdbool.h>

#include "base/buf.h"

/* The most that one file may hold; the library has the same bound for all of a request together. */
#define INPUT_BYTES_MAX ((size_t)256 << 20)

/* The whole file, read with the caller's own rights. `regular` (may be NULL) tells a file from a pipe or a device. */
int input_read_file(const char *path, struct buf *content, bool *regular, cordon_error *err);
/* Standard input up to its end. */
int input_read_stdin(struct buf *content, cordon_error *err);

/* The last component of a path; borrowed from it. */
const char *input_base_name(const char *path);

/* "K=V" into a newly allocated K and a borrowed V. */
int input_split_pair(const char *text, char **name, const char **value, cordon_error *err);

struct input_mount {
    char *source; /* absolute; links in it are left for the library to refuse */
    char *destination;
    bool writable;
};

/* "SRC:DST", "SRC:DST:ro" or "SRC:DST:rw". */
int input_split_mount(const char *text, struct input_mount *mount, cordon_error *err);
void input_mount_free(struct input_mount *mount);

/* The id of the language whose extension the file name carries; newly allocated. */
int input_language_of(cordon_engine *engine, const char *path, char **id, cordon_error *err);

/* Has made, once, what the language's compiler needs, as long as `go_on` says so; says it on a terminal, for it may
 * take a minute. Whatever goes wrong here, programs can be compiled without. */
void input_prebuild(cordon_engine *engine, const char *language, bool quiet, int (*go_on)(void *context));

#endif
