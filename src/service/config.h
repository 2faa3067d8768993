/* The daemon's settings: defaults, then the file, then the environment, then flags. */
#ifndef SERVICE_CONFIG_H
#define SERVICE_CONFIG_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/limits.h"
#include "store/store.h"

struct config {
    char *listen;   /* "127.0.0.1:7700", "[::1]:7700" or "unix:/path" */
    char *data_dir; /* default: the state directory of systemd, XDG or /var/lib/cordon */
    char *tls_cert, *tls_key;
    bool behind_proxy; /* somebody else does TLS */
    bool require_keys; /* also on loopback */
    char **hosts;      /* further names by which it may be called; NULL-terminated */
    char **origins;    /* pages that may call it; NULL-terminated */
    enum store_keep store;
    uint64_t retention_age_s, retention_bytes;
    uint64_t store_bytes; /* of the store's file; 0: no bound */
    unsigned concurrency; /* runs at a time; 0: by processors */
    unsigned queue;       /* runs that may wait */
    uint64_t queue_wait_ms;
    uint64_t memory_bytes; /* of all cells together; 0: three quarters of the machine's */
    uint64_t processes;    /* of all cells together; 0: no bound */
    size_t body_bytes;     /* of a request */
    uint64_t held_bytes;   /* of what is held for all callers; 0: half of the memory */
    uint64_t output_bytes; /* the most that a request may ask for, of each stream */
    unsigned connections;
    uint64_t request_ms; /* for sending a request */
    uint64_t drain_ms;   /* for runs under way at the end */
    uint64_t warm_bytes;
    char **warm;             /* languages made ready at start; NULL-terminated */
    struct limits ceilings;  /* the most that any request may ask for; 0: none */
    struct limits anonymous; /* the same for requests without a key */
    bool allow_unlimited;
    bool prove_languages;                   /* each installed one is run once after the start */
    char **optional;                        /* controls whose absence is tolerated in every request */
    char **redaction_files, **secret_files; /* rules; files whose lines are secret values */
    char *sanitize;                         /* "none", "secrets", "all": where a request says nothing */
    char *languages_dir, *warden_path;
    char *user; /* the HTTP process runs as this user when started by the superuser */
    char *log;  /* "error", "warn", "info", "debug" */
};

/* Every error that was found, in the order of the sources. */
#define CONFIG_PROBLEMS_MAX 64
struct config_problems {
    cordon_error items[CONFIG_PROBLEMS_MAX];
    unsigned count;
};

/* With a list `problems` an error is noted there, the rest is read, and the result is 0; without one (NULL) the first
 * error is returned. */
int config_note(struct config_problems *problems, const cordon_error *err, int code);

/* Defaults; `path` may be NULL: then CORDON_CONFIG, or the first that is there of an ordinary user's own
 * ~/.config/cordon/cordon.yaml and /etc/cordon/cordon.yaml. Errors have the file's line in their text. */
int config_load(const char *path, struct config *config, struct config_problems *problems, cordon_error *err);
/* The names in `optional`, separated by commas, from CORDON_OPTIONAL or else the file; NULL: none. For commands that
 * share no other setting with the daemon. Freed by the caller. */
int config_optional(char **names, cordon_error *err);
/* One setting by its name in the file ("listen", "concurrency", …): a flag's or a variable's. */
int config_set(struct config *config, const char *name, const char *value, cordon_error *err);
/* What no single setting can tell: an address that needs keys and TLS, and the like. */
int config_check(const struct config *config, struct config_problems *problems, cordon_error *err);
/* Whether the files that settings name can be read, by who starts the daemon: it opens them before it gives up its
 * rights. */
int config_check_files(const struct config *config, struct config_problems *problems, cordon_error *err);
/* Only this machine can reach it: loopback or a Unix socket. */
bool config_is_local(const struct config *config);
/* `require_keys`, or implied by an address that others reach. Whether there are keys, the store knows. */
bool config_needs_keys(const struct config *config);
/* The most that any request may ask for: `ceilings`, with `output_bytes`. */
struct limits config_ceilings(const struct config *config);
void config_free(struct config *config);

#endif
