/* Proofs that languages work, kept: each has run the first example of its notes in a cell. */
#ifndef ENGINE_LANGUAGE_PROOFS_H
#define ENGINE_LANGUAGE_PROOFS_H

#include "engine/engine.h"

enum proof_state {
    PROOF_NONE, /* the program could not be tried: no cell could be made */
    PROOF_WORKS,
    PROOF_FAILS,
};

struct proof {
    const struct manifest *manifest;
    enum proof_state state;
    char *problem; /* one line for PROOF_FAILS, else NULL; freed with proofs_free() */
};

/* Fills `state` and `problem` of each proof from what is known, or runs the program, several at a time. What is found
 * is kept for as long as neither the manifest nor the runtime nor what is installed on the host changes: in the engine,
 * and if the language works also in the user's cache directory. */
void proofs_make(struct cordon_engine *engine, struct proof *proofs, size_t count);
void proofs_free(struct proof *proofs, size_t count);

/* The language's example has run well elsewhere. */
void proofs_keep_success(struct cordon_engine *engine, const struct manifest *manifest);

/* What an engine keeps. */
void proofs_forget(struct cordon_engine *engine);

#endif
