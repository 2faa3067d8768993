/* Threads for what blocks: reading the store, judging tests. The loop hands work out and gets it back. */
#ifndef SERVICE_WORK_H
#define SERVICE_WORK_H

#include <cordon/error.h>

#include "service/loop.h"

struct work;

struct work_item {
    struct work_item *next;
    void (*run)(struct work_item *item);  /* in a thread */
    void (*done)(struct work_item *item); /* in the loop, afterwards; may free it */
};

int work_open(struct loop *loop, unsigned threads, struct work **work, cordon_error *err);
/* Never fails: the item brings its own memory. */
void work_submit(struct work *work, struct work_item *item);
/* Waits for what is under way; items that never ran are done without having run. */
void work_close(struct work *work);

#endif
