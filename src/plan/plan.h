/* The plan: a request resolved into what the warden and the cell need, as one flat block in a sealed memfd.
 *
 * The library writes it with a plan_writer; the warden maps it, checks every offset once in plan_map(), and reads it
 * through `struct plan`. It carries no pointers and no policy decisions: those are made before it is written. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/limits.h"

struct plan_file {
    const char *path;
    const char *content;
    size_t length;
    uint32_t mode;
};

struct plan_mount {
    const char *destination;
    bool writable;
};

/* A mapped plan. All strings and contents lie in the mapping, the arrays of pointers beside it. */
struct plan {
    int64_t limit[LIMIT_COUNT];
    uint32_t optional; /* CONTROL_BIT of each tolerated control */
    char **argv;       /* NULL-terminated; argv[0] is only a name */
    char **envp;       /* NULL-terminated */
    char **candidates; /* NULL-terminated: absolute paths to try for execve, in order */
    char **etc;        /* NULL-terminated: names beneath /etc of the environment that the program may read */
    uint64_t pool;     /* which waiting interpreters can serve it; 0: none */
    uint64_t slots;    /* which slots can; 0: none */
    char **handover;   /* what a waiting cell is told before the files; see docs/WARM.md */
    size_t handover_count;
    struct plan_file *files;
    size_t file_count;
    struct plan_mount *mounts; /* the n-th belongs to the n-th mount descriptor that comes with the plan */
    size_t mount_count;
    bool value_pipe; /* a descriptor 3 for the value of the last expression */
    bool terminals;  /* /dev/pts and /dev/ptmx are there */
    void *mapping, *arrays;
    size_t mapping_size, arrays_size;
};

/* What plan_write() is given; borrowed for the call. */
struct plan_source {
    const struct limits *limits;
    uint32_t optional;
    char *const *argv;
    char *const *envp;
    char *const *candidates;
    char *const *etc;
    uint64_t pool, slots;
    char *const *handover;
    const struct plan_file *files; /* `content` NULL with `length` > 0: taken from file_fds[i] */
    const int *file_fds;           /* may be NULL when every file has content */
    size_t file_count;
    const struct plan_mount *mounts;
    size_t mount_count;
    bool value_pipe;
    bool terminals;
};

#define PLAN_FILE_MAX  4096
#define PLAN_MOUNT_MAX 32

/* A sealed memfd that holds the plan. */
int plan_write(const struct plan_source *source, int *memfd, cordon_error *err);
/* Refuses an unsealed, torn or lying block with EBADMSG. 0 or -1 with errno. */
int plan_map(int memfd, struct plan *plan);
void plan_unmap(struct plan *plan);

#endif
