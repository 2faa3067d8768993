/* The inside of a cordon_request: what the setters and the JSON reader fill, and what a plan is made from. */
#ifndef PLAN_REQUEST_H
#define PLAN_REQUEST_H

#include <cordon/request.h>

#include "plan/limits.h"
#include "plan/path.h"

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

/* NAMED: the rules in `rules`. */
enum sanitize { SANITIZE_DEFAULT, SANITIZE_NONE, SANITIZE_SECRETS, SANITIZE_ALL, SANITIZE_NAMED };

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
    bool collect_all; /* what the program was given, too */
    enum sanitize sanitize;
    struct strings rules;
    uint32_t optional; /* CONTROL_BIT of each tolerated control */
    bool stop_on_output_limit;
    bool cold; /* its interpreter must be its own, started for it */
    bool pty;  /* it may open pseudo-terminals */
    bool base64_output;
    char tenant[24];      /* whose compiled programs it uses; "": the engine's */
    struct json_t *tests; /* NULL: none. Read by the judge; a plain run refuses a request that has them */
    bool owns_tests;      /* false: shared with the document that the request was read from */
    size_t content_bytes; /* held in code, files and stdin */
    size_t string_bytes;  /* held in args and env, as execve counts them */
};

/* The most a request may carry: code, files and stdin together. */
#define REQUEST_BYTES_MAX (INT64_C(256) << 20)
/* Arguments and environment: the kernel's bound on one string of execve, and a total that leaves room within its 2 MiB
 * for what the language adds. */
#define REQUEST_STRING_MAX  ((size_t)128 * 1024 - 1)
#define REQUEST_STRINGS_MAX ((size_t)1024 * 1024)
#define REQUEST_ARGS_MAX    8192
#define REQUEST_ENV_MAX     4096
#define REQUEST_COLLECT_MAX 64
#define REQUEST_RULES_MAX   64

/* Whether `length` more bytes fit into the request, where `replaced` of those that it holds go. */
int request_has_room(const cordon_request *request, const char *field, size_t length, size_t replaced,
                     cordon_error *err);

/* Refuses a word that `field` ("isolation", "network", "environment", "on_output_limit", "output_encoding") does not
 * have, and one that it has but that this version cannot do. NULL stands for the default and is fine. */
int request_check_word(const char *field, const char *word, cordon_error *err);

/* What no single setter can check: a language, code or files but not neither, paths that can exist together, an entry
 * that is one of the files and not beside `code`, known isolation, network and environment. Leaves the request
 * unchanged. */
int request_check(const cordon_request *request, cordon_error *err);

#endif
