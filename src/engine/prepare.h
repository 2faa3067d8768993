/* From a request to what a cell needs: which language, which command, which files, which mounts. */
#ifndef ENGINE_PREPARE_H
#define ENGINE_PREPARE_H

#include "engine/engine.h"
#include "output/collect.h"
#include "plan/plan.h"
#include "plan/request.h"

struct prepared {
    const cordon_request *request; /* borrowed */
    const struct manifest *manifest;
    const char *entry;
    uint32_t optional; /* the request's and the engine's */
    struct limits limits, compile_limits;
    int mount_fds[PLAN_MOUNT_MAX];
    struct plan_mount mounts[PLAN_MOUNT_MAX];
    char **sources; /* NULL-terminated, items borrowed */
};

int prepare(struct cordon_engine *engine, const cordon_request *request, struct prepared *prepared, cordon_error *err);
/* For a run without a filter: refuses a request that counts on redaction, since nothing would be redacted. */
int prepare_unfiltered(const cordon_request *request, cordon_error *err);
/* The text of the program itself. */
const struct bytes *prepared_source(const struct prepared *prepared);
void prepared_free(struct prepared *prepared);

/* One step of it. `made`: what the compile step left, or NULL. The plan borrows from prepared, step and made. */
struct prepared_step {
    const struct manifest_step *of;
    bool compile;
    struct command command; /* made by prepare_command() */
    struct plan_file *files;
    int *file_fds;
    char **etc;      /* NULL-terminated, items borrowed */
    char **handover; /* NULL-terminated, items owned */
    int prebuilt;    /* the directory that a compile step finds at its language's place, or -1 */
    struct plan_mount prebuilt_mount;
    struct plan_source plan;
};

int prepare_step(const struct prepared *prepared, bool compile, const struct collected *made,
                 struct prepared_step *step, cordon_error *err);
/* A compile step finds what was prebuilt; the step owns the descriptor. */
void prepare_prebuilt(const struct prepared *prepared, struct prepared_step *step, int directory);
/* The command, unless it is there: whoever goes to a waiting interpreter needs none. */
int prepare_command(const struct prepared *prepared, struct prepared_step *step, cordon_error *err);
/* That what it runs is installed; makes the command for it. */
int prepare_check(const struct prepared *prepared, struct prepared_step *step, cordon_error *err);
void prepared_step_free(struct prepared_step *step);

#endif
