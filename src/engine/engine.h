/* The inside of a cordon_engine, shared by the files of this folder. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <cordon/engine.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "lang/catalog.h"

struct cordon_engine {
    atomic_uint references; /* the caller's, and one for each run */
    int socket;             /* orders go out; SEQPACKET keeps threads apart */
    pid_t warden;
    int warden_pidfd;
    struct catalog *catalog;
    uint32_t optional;                            /* controls that every run tolerates missing */
    pthread_mutex_t versions_lock, learning_lock; /* the second is held while a runtime is asked, and taken first */
    struct version *versions;
    pthread_mutex_t proofs_lock; /* one proving at a time */
    pthread_mutex_t kept_proofs_lock;
    struct kept_proof *proofs;
    struct compile_cache *compiled; /* NULL: nothing is kept */
    bool warm;
    size_t warm_bytes;
    pthread_mutex_t pools_lock;
    struct known_pool *pools; /* that the warden knows */
    struct offer *offers;     /* cells to be had without asking; under the same lock */
    struct bell {
        int timer; /* when it is due, the warden looks at the sockets of those that were taken */
        uint64_t due_us;
        pthread_mutex_t lock;
    } bell;
    int zygote; /* the library that interpreters load to be forked; -1: none is forked */
};

/* A run outlives a closed engine as an object: it then only tells that the warden is gone. */
struct cordon_engine *engine_ref(struct cordon_engine *engine);
void engine_unref(struct cordon_engine *engine);

/* Whether the warden's process is there. */
bool engine_is_alive(const struct cordon_engine *engine);

/* Reads every manifest and what lies beside it, so that a caller may give up its rights to those files. */
int engine_read_ahead(struct cordon_engine *engine, cordon_error *err);

/* places.c: where the project's own files are. */
char *places_own_directory(void); /* NULL when it cannot be told; freed by the caller */
int places_warden(const char *own, const char *given, char **path, cordon_error *err);
/* NULL-terminated list, freed with places_free(). */
int places_languages(const char *own, const char *given, char ***directories, cordon_error *err);
void places_free(char **directories);

/* version.c: the version a language's runtime prints, from a cache keyed by the runtime's file, or from a run of it in
 * a cell. NULL when it cannot be told. Owned by the engine. */
const char *version_of(struct cordon_engine *engine, const struct manifest *manifest);
/* Whether version_of() needs no cell. */
bool version_is_known(struct cordon_engine *engine, const struct manifest *manifest);
/* Asks for those of all languages, while `go_on` says so; may take long. */
void versions_learn(struct cordon_engine *engine, int (*go_on)(void *context), void *context);
void versions_free(struct cordon_engine *engine);

/* What an interpreter loads to be forked, opened; -1 when it is not there. */
int places_zygote(const char *own);

/* Whether the first command of each step of the language, and the one that tells its version, are in the environment.
 */
bool language_is_installed(const struct manifest *manifest);

/* doctor.c: makes a cell in which nothing but `true` runs, refused as a run is where a control is missing that is not
 * in `optional`. *missing: those that are tolerated and not in force. */
int engine_prove_isolation(struct cordon_engine *engine, uint32_t optional, uint32_t *missing, cordon_error *err);

/* Asked several times a second whether a proof is still wanted; 0 gives it up. */
struct proof_watch {
    int (*go_on)(void *context);
    void *context;
};
/* prove.c: runs the language's first example as a request would, and compares what it prints. */
int engine_prove_language(struct cordon_engine *engine, const struct manifest *manifest, uint32_t optional,
                          const struct proof_watch *watch, cordon_error *err);

/* The first candidate that exists in the environment, or NULL. */
const char *environment_find(char *const *candidates);

#endif
