/* Owns the resolution of a request against manifests and the environment. Opens mount sources; makes nothing. */
#include "engine/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

static int open_mounts(struct prepared *prepared, cordon_error *err)
{
    const cordon_request *request = prepared->request;
    for (size_t i = 0; i < request->mount_count; i++) {
        const struct request_mount *mount = &request->mounts[i];
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
        char field[48];
        snprintf(field, sizeof field, "/mounts/%zu/source", i);
        int fd = (int)syscall(SYS_openat2, AT_FDCWD, mount->source, &how, sizeof how);
        if (fd < 0) {
            error_field(err, field, "cannot open the mount source %s: %s", mount->source,
                        errno == ELOOP ? "it is, or lies behind, a symbolic link" : strerror(errno));
            return errno == ELOOP ? error_hint(err, "give the path that the link leads to") : CORDON_EINVAL;
        }
        prepared->mount_fds[i] = fd;
        prepared->mounts[i] = (struct plan_mount){.destination = mount->destination, .writable = mount->writable};
    }
    return 0;
}

static bool has_extension(const struct manifest *manifest, const char *path)
{
    const char *dot = strrchr(path, '.');
    for (unsigned i = 0; dot && i < manifest->extensions_count; i++)
        if (!strcmp(dot + 1, manifest->extensions[i]))
            return true;
    return false;
}

/* The entry first, then every other file in the language. */
static int find_sources(struct prepared *prepared, cordon_error *err)
{
    const cordon_request *request = prepared->request;
    size_t count = 0;
    prepared->sources = calloc(request->file_count + 2, sizeof *prepared->sources);
    if (!prepared->sources)
        return error_nomem(err);
    prepared->sources[count++] = (char *)prepared->entry;
    for (size_t i = 0; i < request->file_count; i++)
        if (has_extension(prepared->manifest, request->files[i].path) &&
            strcmp(request->files[i].path, prepared->entry) != 0)
            prepared->sources[count++] = request->files[i].path;
    return 0;
}

/* `code` becomes a file of the manifest's name; a request of files only is started at its entry, by default the file of
 * that name or else the first. */
static const char *choose_entry(const cordon_request *request, const struct manifest *manifest)
{
    if (request->has_code)
        return manifest->file;
    if (request->entry)
        return request->entry;
    for (size_t i = 0; i < request->file_count; i++)
        if (!strcmp(request->files[i].path, manifest->file))
            return manifest->file;
    return request->files[0].path;
}

int prepare(struct cordon_engine *engine, const cordon_request *request, struct prepared *prepared, cordon_error *err)
{
    *prepared = (struct prepared){
        .request = request, .optional = request->optional | engine->optional, .limits = request->limits};
    for (unsigned i = 0; i < PLAN_MOUNT_MAX; i++)
        prepared->mount_fds[i] = -1;
    int code = request_check(request, err);
    if (code == 0)
        code = catalog_find(engine->catalog, request->language, &prepared->manifest, err);
    if (code == 0)
        code = limits_complete(&prepared->limits, request->profile, err);
    if (code < 0)
        return code;
    prepared->entry = choose_entry(request, prepared->manifest);
    prepared->compile_limits = prepared->limits;
    limits_for_compile(&prepared->compile_limits);
    code = find_sources(prepared, err);
    if (code == 0)
        code = open_mounts(prepared, err);
    if (code < 0)
        prepared_free(prepared);
    return code;
}

const struct bytes *prepared_source(const struct prepared *prepared)
{
    const cordon_request *request = prepared->request;
    for (size_t i = 0; !request->has_code && i < request->file_count; i++)
        if (!strcmp(request->files[i].path, prepared->entry))
            return &request->files[i].content;
    return &request->code;
}

void prepared_free(struct prepared *prepared)
{
    for (unsigned i = 0; i < PLAN_MOUNT_MAX; i++) {
        cleanup_close(&prepared->mount_fds[i]);
        prepared->mount_fds[i] = -1;
    }
    free(prepared->sources);
    prepared->sources = NULL;
}

void prepare_prebuilt(const struct prepared *prepared, struct prepared_step *step, int directory)
{
    if (directory < 0)
        return;
    step->prebuilt = directory;
    step->prebuilt_mount = (struct plan_mount){.destination = prepared->manifest->prebuild->at};
    step->plan.mounts = &step->prebuilt_mount;
    step->plan.mount_count = 1;
}

int prepare_command(const struct prepared *prepared, struct prepared_step *step, cordon_error *err)
{
    const cordon_request *request = prepared->request;
    struct command_input input = {.entry = prepared->entry,
                                  .sources = prepared->sources,
                                  .args = step->compile ? NULL : &request->args,
                                  .env = step->compile ? NULL : request->env,
                                  .env_count = step->compile ? 0 : request->env_count,
                                  .limits = step->plan.limits};
    if (step->command.argv)
        return 0;
    int code = command_build(step->of, &input, &step->command, err);
    if (code < 0)
        return code;
    step->plan.argv = step->command.argv;
    step->plan.envp = step->command.envp;
    step->plan.candidates = step->command.candidates;
    return 0;
}

int prepare_check(const struct prepared *prepared, struct prepared_step *step, cordon_error *err)
{
    const struct manifest *manifest = prepared->manifest;
    int code = prepare_command(prepared, step, err);
    /* A compile step may begin with a shell, which is there when the compiler is not. */
    bool found = code == 0 && environment_find(step->command.candidates) != NULL;
    if (code < 0 || (found && (!manifest->compile || language_is_installed(manifest))))
        return code;
    error_set(err, CORDON_ENOTFOUND, "language", "%s cannot run here: %s is not installed", manifest->name,
              found ? manifest->version[0] : step->command.argv[0]);
    if (!manifest->packages_count)
        return error_hint(err, "Debian has no package of it; install it beneath /usr/local or /opt");
    return error_hint(err, "apt install %s", manifest->packages[0]);
}

static int gather_files(const struct prepared *prepared, const struct collected *made, struct prepared_step *step)
{
    const cordon_request *request = prepared->request;
    size_t most = request->file_count + 1 + (made ? made->count : 0), count = 0;
    step->files = calloc(most, sizeof *step->files);
    step->file_fds = calloc(most, sizeof *step->file_fds);
    if (!step->files || !step->file_fds)
        return -1;
    if (request->has_code)
        step->files[count++] = (struct plan_file){.path = prepared->manifest->file,
                                                  .content = request->code.data ? request->code.data : "",
                                                  .length = request->code.length,
                                                  .mode = 0644};
    for (size_t i = 0; i < request->file_count; i++) {
        /* What one run returned is given to the next, with other code. */
        if (request->has_code && !strcmp(request->files[i].path, prepared->manifest->file))
            continue;
        step->files[count++] =
            (struct plan_file){.path = request->files[i].path,
                               .content = request->files[i].content.data ? request->files[i].content.data : "",
                               .length = request->files[i].content.length,
                               .mode = 0755};
    }
    size_t given = count;
    for (size_t i = 0; made && i < made->count; i++) {
        bool replaces = false;
        for (size_t j = 0; j < given; j++)
            replaces |= !strcmp(step->files[j].path, made->items[i].path);
        if (replaces)
            continue;
        step->file_fds[count] = made->items[i].fd;
        step->files[count++] = (struct plan_file){.path = made->items[i].path,
                                                  .content = made->items[i].content,
                                                  .length = made->items[i].size,
                                                  .mode = made->items[i].mode};
    }
    step->plan.file_count = count;
    return 0;
}

static int list_etc(const struct manifest *manifest, struct prepared_step *step)
{
    step->etc = calloc(manifest->etc_count + 1, sizeof *step->etc);
    for (unsigned i = 0; step->etc && i < manifest->etc_count; i++)
        step->etc[i] = (char *)manifest->etc[i];
    return step->etc ? 0 : -1;
}

int prepare_step(const struct prepared *prepared, bool compile, const struct collected *made,
                 struct prepared_step *step, cordon_error *err)
{
    const cordon_request *request = prepared->request;
    const struct manifest *manifest = prepared->manifest;
    const struct manifest_step *of = compile                                   ? manifest->compile
                                     : request->has_code && manifest->run_code ? manifest->run_code
                                                                               : manifest->run;
    *step = (struct prepared_step){.of = of, .compile = compile, .prebuilt = -1};
    if (gather_files(prepared, made, step) < 0 || list_etc(manifest, step) < 0) {
        prepared_step_free(step);
        return error_nomem(err);
    }
    step->plan.limits = compile ? &prepared->compile_limits : &prepared->limits;
    step->plan.optional = prepared->optional;
    step->plan.etc = step->etc;
    step->plan.files = step->files;
    step->plan.file_fds = step->file_fds;
    step->plan.mounts = prepared->mounts;
    step->plan.mount_count = compile ? 0 : request->mount_count;
    step->plan.terminals = !compile && request->pty;
    step->plan.value_pipe = !compile && manifest->value && of == manifest->run_code;
    return 0;
}

void prepared_step_free(struct prepared_step *step)
{
    command_free(&step->command);
    free(step->files);
    free(step->file_fds);
    free(step->etc);
    for (char **item = step->handover; item && *item; item++)
        free(*item);
    free(step->handover);
    cleanup_close(&step->prebuilt);
    *step = (struct prepared_step){.prebuilt = -1};
}

int prepare_unfiltered(const cordon_request *request, cordon_error *err)
{
    char field[128] = "/sanitize";
    bool counts_on_it = request->sanitize > SANITIZE_NONE;
    for (size_t i = 0; i < request->env_count && !counts_on_it; i++)
        if (request->env[i].secret && *request->env[i].value) {
            counts_on_it = true;
            snprintf(field, sizeof field, "/env/%.100s", request->env[i].name);
        }
    if (!counts_on_it)
        return 0;
    error_field(err, field, "nothing here can redact it in the output");
    return error_hint(err, "use `cordon run` or the daemon, or give the run a filter");
}
