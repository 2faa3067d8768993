/* The engine: one warden process that makes cells, and the language manifests.
 *
 * Any number of threads may start runs on one engine. Closing it kills every cell it still has. The library never
 * exits, prints, or touches the host program's signals. */
#ifndef CORDON_ENGINE_H
#define CORDON_ENGINE_H

#include <cordon/error.h>
#include <cordon/request.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cordon_engine cordon_engine;

typedef struct cordon_engine_options {
    size_t struct_size;
    /* Where the language manifests are; NULL searches /etc/cordon/languages and beside the library. */
    const char *languages_dir;
    /* The cordon-warden executable; NULL searches beside the library and in libexec. */
    const char *warden_path;
    /* A warden linked into the program: run in a forked copy of it, which saves the start of an executable. Only for a
     * process with one thread, and only used for the superuser; it should wipe what the copy has of arguments and
     * environment. NULL, the default, starts warden_path. */
    int (*warden_main)(int socket);
    /* Not zero: cells for what is asked for often are made ready beforehand and wait, each for one run. */
    int warm;
    /* The most memory that waiting cells may hold together; 0 means 1 GiB. */
    size_t warm_bytes;
    /* Where compiled programs are kept, by content; NULL means `cordon/compiled` in the user's cache directory. */
    const char *cache_dir;
    /* The most bytes kept there; 0 means 512 MiB, SIZE_MAX keeps nothing and looks nothing up. */
    size_t cache_bytes;
    /* Whose compiled programs they are: what one tenant compiled is not used for another. NULL is a tenant too. */
    const char *tenant;
} cordon_engine_options;

#define CORDON_ENGINE_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(cordon_engine_options), NULL, NULL, NULL, 0, 0, NULL, 0, NULL                                           \
    }

/* `options` may be NULL. */
int cordon_engine_open(const cordon_engine_options *options, cordon_engine **engine, cordon_error *err);
void cordon_engine_close(cordon_engine *engine);

/* Makes `count` cells ready for requests like this one and waits for them, at most `timeout_ms`; the engine is warm
 * from then on. The number that are ready, 0 when no waiting cell can serve such a request, or a negative code. */
int cordon_engine_warm(cordon_engine *engine, const cordon_request *like, unsigned count, int timeout_ms,
                       cordon_error *err);
/* The same for programs in a language, with each set of modules that is loaded beforehand for it. */
int cordon_engine_warm_language(cordon_engine *engine, const char *language, unsigned count, int timeout_ms,
                                cordon_error *err);
/* What a language's compiler would make anew in each cell (the standard library, for a Go that comes without it), made
 * once, and kept with the compiled programs. Runs never wait for it: without it they compile everything themselves.
 *
 * It may take minutes. While it is made, `go_on` (may be NULL) is asked several times a second whether to, and gives up
 * with 0. It is not made while somebody else makes it, nor for ten minutes after that failed; then it is an error.
 *
 * 1: it was made now, or, with `only_look`, there is something to be made; 0: there is not; or a negative code. */
int cordon_engine_prebuild(cordon_engine *engine, const char *language, int only_look, int (*go_on)(void *context),
                           void *context, cordon_error *err);
/* The pools of waiting cells as JSON, with the memory they hold; to be freed with cordon_free(). */
int cordon_pools(cordon_engine *engine, char **json, cordon_error *err);

/* JSON texts, to be freed with cordon_free(). */
int cordon_languages(cordon_engine *engine, char **json, cordon_error *err);
/* The id of the language a file's name tells of ("app.py"), owned by the engine. */
int cordon_language_of_file(cordon_engine *engine, const char *file, const char **id, cordon_error *err);
/* What this machine can enforce, found by making a cell. */
int cordon_doctor(cordon_engine *engine, char **json, cordon_error *err);
void cordon_free(void *memory);

const char *cordon_version(void);

#ifdef __cplusplus
}
#endif
#endif
