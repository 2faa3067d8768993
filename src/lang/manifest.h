/* A language, as its manifest (languages/<id>.yaml) describes it. Adding a language is one manifest and no C. */
#ifndef LANG_MANIFEST_H
#define LANG_MANIFEST_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "plan/limits.h"
#include "plan/request.h"

/* Every list of strings in a manifest has its count beside it and a NULL after its last item. */

struct manifest_env {
    const char *name;
    const char *value;
};

/* One command. In argv, env values: {entry} {args} {sources} {memory_mb} {heap_mb} {memory_bytes} {cpus}; {args} and
 * {sources} stand alone and expand to any number of arguments. */
struct manifest_step {
    const char **argv;
    unsigned argv_count;
    struct manifest_env *env;
    unsigned env_count;
    const char **outputs; /* compile: globs of what the run step needs, beside the request's own files */
    unsigned outputs_count;
};

/* A row of the language's error table: an extended regular expression over one line of stderr, and which groups hold
 * what. Rows are tried in order, and each adds what is still unknown. */
struct manifest_error {
    const char *match;
    int type, message, file, line, column; /* group numbers; 0 = absent; message -1 = the line after */
    bool last;                             /* of several lines the last one counts, not the first */
    const char *fixed_type;                /* when the type is not in the text */
    const char *category;                  /* when not given by the type */
};

struct manifest_category {
    const char *type; /* exception or error name */
    const char *category;
    const char *hint;
};

struct manifest_package {
    const char *module;
    const char *package;
};

struct manifest_example {
    const char *name;
    const char *code;
    const char *input;
    const char *output;
};

/* What is known about a language beyond how to run it. Kept in a file of its own (notes/<id>.yaml beside the manifest),
 * because a run that succeeds never reads it. */
struct manifest_notes {
    struct manifest_error *errors;
    unsigned errors_count;
    struct manifest_category *categories;
    unsigned categories_count;
    struct manifest_example *examples;
    unsigned examples_count;
    const char **modules; /* names that come with the language: an unknown module close to one is a slip */
    unsigned modules_count;
    const char *module_package;               /* Debian package of a module, with {module} in it; may be NULL */
    struct manifest_package *module_packages; /* the modules whose package is called otherwise */
    unsigned module_packages_count;
};

/* A set of modules loaded before the code comes. Tried in order; the first whose `when` (POSIX extended regular
 * expression, NULL: always) is found in the program's source is used. */
struct manifest_tier {
    const char *name;
    const char *when;
    const char **preload;
    unsigned preload_count;
    void *regex; /* `when`, compiled when first needed */
};

/* How an interpreter is started to wait for its program. In argv, beside a step's placeholders: {bootstrap} (the text
 * of the file `bootstrap` in warm/ beside the manifest) and {preload} (the tier's module names joined by commas).
 * {entry} is the manifest's `file`, {args} and {sources} are empty. */
struct manifest_warm {
    const char **argv; /* of a waiting interpreter that is started; none: it can only be forked */
    unsigned argv_count;
    struct manifest_env *env; /* beside the run step's own */
    unsigned env_count;
    const char *bootstrap; /* file name; its text is read through manifest_bootstrap() */
    char *bootstrap_text;
    const char **zygote; /* argv of the process that waiting ones are forked off; none: each is started. May hold {fork}
                            (the text of the file `fork`) and {library} (the library it loads to be forked) */
    unsigned zygote_count;
    const char *fork;
    char *fork_text;
    const char *check; /* file: a program that every new zygote must be able to run, or it is given up */
    char *check_text;
    const char **cold_env; /* fnmatch patterns: variables that only an interpreter started with them obeys */
    unsigned cold_env_count;
    struct manifest_tier *tiers; /* at least one: {"base", NULL, {}} when none is given */
    unsigned tiers_count;
};

/* What its compiler would make anew in each cell: made once by a program of ours, which leaves it in a directory of its
 * work directory, and shown read-only to every compile step. */
struct manifest_prebuild {
    const char *source; /* file in warm/ beside the manifest, which becomes the manifest's `file` */
    const char **argv;
    unsigned argv_count;
    struct manifest_env *env;
    unsigned env_count;
    const char *from; /* the directory that it leaves */
    const char *at;   /* where compile steps find it */
};

struct manifest {
    const char *id;
    const char *name;
    const char **aliases;
    unsigned aliases_count;
    const char **extensions; /* without the dot */
    unsigned extensions_count;
    const char **packages; /* Debian packages that provide it */
    unsigned packages_count;
    const char *file;     /* name of the file that `code` becomes: main.py */
    const char **version; /* argv that prints the version */
    unsigned version_count;
    const char **etc; /* names beneath /etc that the runtime reads */
    unsigned etc_count;
    struct manifest_step *compile;      /* NULL: interpreted */
    struct manifest_prebuild *prebuild; /* NULL: compile steps start from nothing */
    struct manifest_step *run;
    struct manifest_step *run_code; /* instead of `run` when the program came as `code` */
    bool value;                     /* the run_code step writes the last value as JSON to descriptor 3 */
    struct manifest_warm *warm;     /* NULL: never waits, every run starts its own */
    char *path;                     /* where it was read from */
    struct manifest_notes *notes;   /* read through manifest_notes() */
    struct manifest_text *texts;    /* read through manifest_text() */
};

/* Reads one manifest; errors carry file, line and what was expected. Freed with manifest_free(). */
int manifest_load(const char *path, struct manifest **manifest, cordon_error *err);
void manifest_free(struct manifest *manifest);
/* The notes, read when first asked for and owned by the manifest; empty where a language has none. Safe from several
 * threads. */
int manifest_notes(const struct manifest *manifest, const struct manifest_notes **notes, cordon_error *err);
/* The text of the bootstrap, read and checked with the tiers when first asked for, and owned by the manifest; only
 * where there is a `warm`. Safe from several threads. */
int manifest_bootstrap(const struct manifest *manifest, const char **text, cordon_error *err);
/* A file in a folder beside the manifest, or, where it is missing there, in the same folder of another directory. */
struct manifest_place {
    const char *folder, *name;
    const char *otherwise; /* NULL: nowhere */
};
/* Such a file's text, read when first asked for and owned by the manifest. Safe from several threads. */
int manifest_text(const struct manifest *manifest, const struct manifest_place *place, const char **text,
                  size_t *length, cordon_error *err);
/* The text of the program that prebuilds; only where there is a `prebuild`. */
int manifest_prebuild_source(const struct manifest *manifest, const char **text, size_t *length, cordon_error *err);
/* Reads notes, bootstrap and the program that prebuilds, so that none of them is read from a file later. */
int manifest_read_ahead(const struct manifest *manifest, cordon_error *err);
/* The tier for a program, which need not end with NUL; NULL where there is no `warm` or no tier fits. */
const struct manifest_tier *manifest_tier_for(const struct manifest *manifest, const char *source, size_t length);

/* A command ready for the plan: NULL-terminated arrays, all owned by the command. */
struct command {
    char **argv;
    char **envp;       /* base environment, then the manifest's, then the request's; later ones win */
    char **candidates; /* argv[0] on the cell's PATH; or argv[0] itself when it holds a slash */
};

struct command_input {
    const char *entry;             /* relative to the work directory */
    char *const *sources;          /* NULL-terminated; every file of the request with one of the extensions */
    const struct strings *args;    /* may be NULL */
    const struct request_env *env; /* may be NULL */
    size_t env_count;
    const struct limits *limits;
};

/* A file of the work directory as a word of a command, freed by the caller: "./-c" for what could be taken for anything
 * but a file's name. NULL when memory is out. */
char *command_file(const char *path);
int command_build(const struct manifest_step *step, const struct command_input *input, struct command *command,
                  cordon_error *err);
/* The command of a waiting interpreter: the manifest's run step lends its variables, the input its limits. The
 * program's own arguments and variables come later, with the code. */
int command_build_warm(const struct manifest *manifest, const struct manifest_tier *tier,
                       const struct command_input *input, struct command *command, cordon_error *err);
/* The command of the process that such interpreters are forked off. */
int command_build_zygote(const struct manifest *manifest, const struct manifest_tier *tier,
                         const struct command_input *input, const char *library, struct command *command,
                         cordon_error *err);
/* Whether the command of a waiting interpreter, or its environment, holds the memory limit, or the share of processors.
 */
bool command_tells_memory(const struct manifest *manifest);
bool command_tells_cpus(const struct manifest *manifest);
void command_free(struct command *command);

#endif
