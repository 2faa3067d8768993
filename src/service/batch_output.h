/* The results of a batch: a file of lines that grows, and that tells what is done when a batch goes on. */
#ifndef SERVICE_BATCH_OUTPUT_H
#define SERVICE_BATCH_OUTPUT_H

#include <cordon/error.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

struct batch_output {
    int fd;
    const char *path;
    json_t *done; /* id → whether it went well; of earlier batches */
    size_t failed_before;
    pthread_mutex_t lock;
};

/* Opens or makes the file. An unfinished last line is dropped; with `retry` so are the lines of what did not go well. A
 * file in which another line is no result is left alone. */
int batch_output_open(struct batch_output *output, const char *path, bool retry, cordon_error *err);
void batch_output_close(struct batch_output *output);

/* Whether this id has its result already. */
bool batch_output_has(const struct batch_output *output, const json_t *id);
/* One line, in one write: a batch that is killed leaves at most its last line unfinished. Safe from several threads. */
int batch_output_add(struct batch_output *output, const json_t *result, cordon_error *err);

#endif
