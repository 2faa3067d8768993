/* The engine: one warden process that makes cells, and the language manifests.
 *
 * Any number of threads may start runs on one engine. Closing it kills every cell it still has. The library never
 * exits, prints, or touches the host program's signals. The comments of the functions are also their manual pages. */
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
    /* Controls that may be missing in every run of this engine, separated by commas ("cgroup"), as if each request
     * named them; NULL: only those that a request names itself. */
    const char *optional;
} cordon_engine_options;

#define CORDON_ENGINE_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(cordon_engine_options), NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL                                     \
    }

/* Opens an engine. This starts the warden process and reads the language manifests. `options` may be NULL, which means
 * CORDON_ENGINE_OPTIONS_INIT. The caller closes the engine with cordon_engine_close(). */
int cordon_engine_open(const cordon_engine_options *options, cordon_engine **engine, cordon_error *err);
/* Closes an engine. The warden kills every cell that is left and ends. Runs that are under way end with CORDON_EGONE;
 * they must still be freed. `engine` may be NULL. */
void cordon_engine_close(cordon_engine *engine);

/* Makes cells ready in advance for requests like this one. The call waits until `count` cells are ready, at most
 * `timeout_ms`; from then on the engine keeps such cells ready. Returns the number of cells that are ready, 0 when
 * a waiting cell cannot serve such a request, or a negative code. */
int cordon_engine_warm(cordon_engine *engine, const cordon_request *like, unsigned count, int timeout_ms,
                       cordon_error *err);
/* Makes cells ready in advance for programs in a language. For each set of modules that the language's manifest loads
 * beforehand, the call waits for `count` cells as cordon_engine_warm() does, and returns the same. */
int cordon_engine_warm_language(cordon_engine *engine, const char *language, unsigned count, int timeout_ms,
                                cordon_error *err);
/* Prepares once what a language's compiler would make again in each cell. For a Go that comes without its compiled
 * standard library, this is that library. The outcome is kept with the compiled programs. Runs never wait for it:
 * without it they compile everything themselves.
 *
 * The call may take minutes. Meanwhile it asks `go_on` (may be NULL) several times a second whether to continue, and
 * gives up when that returns 0. It is an error when another Cordon process is preparing the same, and for ten minutes
 * after a failed attempt.
 *
 * Returns 1 when it was prepared in this call or, with `only_look`, when there is something to prepare; 0 when there is
 * nothing to prepare; or a negative code. */
int cordon_engine_prebuild(cordon_engine *engine, const char *language, int only_look, int (*go_on)(void *context),
                           void *context, cordon_error *err);
/* Describes the pools of waiting cells. The JSON text tells how many cells wait in each pool and how much memory they
 * hold. The caller frees it with cordon_free(). */
int cordon_pools(cordon_engine *engine, char **json, cordon_error *err);

/* Lists the languages with the versions that are installed here. The caller frees the JSON text with cordon_free(). */
int cordon_languages(cordon_engine *engine, char **json, cordon_error *err);
/* Finds the language of a source file by the file's name. For "app.py" the id is "python". The engine owns the text. */
int cordon_language_of_file(cordon_engine *engine, const char *file, const char **id, cordon_error *err);
/* Describes which controls can be enforced on this machine. The library makes a cell to find out. The caller frees
 * the JSON text with cordon_free(). */
int cordon_doctor(cordon_engine *engine, char **json, cordon_error *err);
/* Frees a text that the library allocated. `memory` may be NULL. */
void cordon_free(void *memory);

/* Returns the version of the library. The text is constant, for example "0.1.0". */
const char *cordon_version(void);

#ifdef __cplusplus
}
#endif
#endif
