/* The inside of a cordon_request: what the setters and the JSON reader fill, and what a plan is made from. */
#ifndef PLAN_REQUEST_H
#define PLAN_REQUEST_H

#include <cordon/request.h>

#include "plan/limits.h"

struct bytes {
    char *data; /* NUL-terminated for convenience; may contain NUL */
    size_t length;
};

struct request_file {
    char *path;
    struct bytes content;
};

struct request_env {
    char *name;
    char *value;
    bool secret;
};

struct request_mount {
    char *source;
    char *destination;
    bool writable;
};

struct strings {
    char **items;
    size_t count;
};

struct cordon_request {
    char *language;
    bool has_code;
    struct bytes code;
    struct request_file *files;
    size_t file_count;
    char *entry; /* NULL: the code, or the first file */
    bool has_stdin;
    struct bytes stdin_bytes;
    struct strings args;
    struct request_env *env;
    size_t env_count;
    char *profile; /* NULL: standard */
    struct limits limits;
    char *isolation;   /* NULL: container */
    char *network;     /* NULL: none */
    char *environment; /* NULL: host */
    struct request_mount *mounts;
    size_t mount_count;
    struct strings collect;
    uint32_t optional; /* CONTROL_BIT of each tolerated control */
    bool stop_on_output_limit;
    bool base64_output;
};

/* The most a request may carry: code and files together. */
#define REQUEST_BYTES_MAX (INT64_C(256) << 20)

/* What no single setter can check: a language, code or files but not neither, an entry that exists, known isolation,
 * network and environment. Leaves the request unchanged. */
int request_check(const cordon_request *request, cordon_error *err);

/* True for a path that stays beneath the work directory: relative, no empty, "." or ".." component, no NUL, at most 255
 * bytes a component and 1024 in all. */
bool request_path_is_safe(const char *path);

#endif
