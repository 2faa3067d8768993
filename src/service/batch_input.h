/* The requests of a batch: a JSON object a line, each with the key and the hash by which its result is found again. */
#ifndef SERVICE_BATCH_INPUT_H
#define SERVICE_BATCH_INPUT_H

#include <cordon/error.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/sha256.h"

struct task {
    json_t *id;                      /* the request's own, else the number of its line */
    size_t line;                     /* 0: the request has an id of its own, which no line before has */
    size_t at;                       /* the number of its line in any case */
    char *key;                       /* batch_key() of the two */
    char hash[2 * SHA256_BYTES + 1]; /* of the request without its id, however its members are ordered */
    json_t *request;                 /* NULL: `error` says why */
    cordon_error error;              /* code 0: none */
};

struct batch_input {
    FILE *file;
    json_t *seen; /* id → its line, so that no id is given twice */
    char *line;
    size_t capacity, number;
};

/* `path` "-" is standard input. *total is the number of requests, 0 where only reading them would tell. */
int batch_input_open(struct batch_input *input, const char *path, size_t *total, cordon_error *err);
void batch_input_close(struct batch_input *input);

/* 1 with the next request, 0 at the end. Not safe from several threads. */
int batch_input_next(struct batch_input *input, struct task *task, cordon_error *err);
void task_free(struct task *task);

/* The name of a result among the others: a number and a text are different ids, and a line's number is neither. Freed
 * by the caller; NULL when memory is out. */
char *batch_key(const json_t *id, size_t line);

#endif
