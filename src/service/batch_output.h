/* The results of a batch: a file of lines that grows, and that tells what is done when a batch goes on. */
#ifndef SERVICE_BATCH_OUTPUT_H
#define SERVICE_BATCH_OUTPUT_H

#include <cordon/error.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "service/batch_input.h"

struct batch_output {
    int fd;
    const char *path;
    json_t *before;  /* key → {at, good, hash} of the lines of earlier batches */
    size_t unhashed; /* of these, how many do not tell which request they belong to */
    off_t *dropped;  /* where lines begin that another takes the place of */
    size_t dropped_count, dropped_capacity;
    pthread_mutex_t lock; /* of writing */
};

/* What an earlier batch left of a request. */
enum batch_before { BEFORE_NOTHING, BEFORE_GOOD, BEFORE_FAILED, BEFORE_CHANGED };

/* Opens or makes the file; `path` "-" is standard output. An unfinished last line is dropped; with `retry` so are the
 * lines of what did not go well. A file in which another line is no result is left alone. */
int batch_output_open(struct batch_output *output, const char *path, bool retry, cordon_error *err);
void batch_output_close(struct batch_output *output);

/* Finds the request's result. One that belongs to another request, or that does not tell to which, is left out by
 * batch_output_settle(). Not safe from several threads. */
int batch_output_find(struct batch_output *output, const struct task *task, enum batch_before *found,
                      cordon_error *err);
/* One line, in one write: a batch that is killed leaves at most its last line unfinished. Safe from several threads. */
int batch_output_add(struct batch_output *output, const json_t *result, cordon_error *err);
/* Takes lines out that others have taken the place of; called when nothing is added any more. */
int batch_output_settle(struct batch_output *output, cordon_error *err);

#endif
