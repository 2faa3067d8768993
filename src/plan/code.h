/* What a waiting interpreter is handed: one message with the kind of program, its entry, arguments, variables and
 * files. Sent by the warden for an order, or by the library to a cell that it was offered. */
#ifndef PLAN_CODE_H
#define PLAN_CODE_H

#include "plan/plan.h"

struct code_source {
    const int64_t *limit;
    char *const *handover;
    size_t handover_count;
    const struct plan_file *files;
    size_t file_count;
};

/* Whether it fits into one message, and its files into their limits: whoever writes the files into a slot tells of
 * those that do not, but a bootstrap would have to be believed. */
bool code_fits(const struct code_source *source);
/* 0, or -1 with errno. Never blocks. */
int code_send(int socket, const struct code_source *source);

#endif
