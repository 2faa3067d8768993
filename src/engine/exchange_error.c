/* Turns a failure to make a cell or to start the program into an error that names the cause and what to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cell/report.h"
#include "engine/engine.h"
#include "engine/exchange.h"

/* What the request itself can cause in the steps that handle it: names, kinds and rights of what it gives. Anything
 * else (a process that was killed, a machine without memory or descriptors) is a failure of Cordon or its machine, and
 * the request is not to be blamed for it. */
static bool is_the_requests(const struct event_failed *failed)
{
    static const int common[] = {EACCES, EPERM,        ENOENT, ENOTDIR, EISDIR, EEXIST,
                                 ELOOP,  ENAMETOOLONG, EINVAL, EROFS,   EXDEV};
    static const struct {
        enum cell_step step;
        int error;
    } own[] = {{STEP_REQUEST_MOUNT, ESTALE}, {STEP_FILES, ENOSPC}, {STEP_FILES, EDQUOT}, {STEP_FILES, EFBIG},
               {STEP_FILES, ENOMEM},         {STEP_EXEC, E2BIG},   {STEP_EXEC, ENOEXEC}, {STEP_EXEC, ELIBBAD}};
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        if (failed->error == common[i])
            return true;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (failed->step == own[i].step && failed->error == own[i].error)
            return true;
    return false;
}

static int own_error(const struct event_failed *failed, cordon_error *err)
{
    error_sys(err, failed->error, "cell", "cannot start the program: %s", failed->text);
    if (failed->error == EINTR)
        return error_hint(err, "something outside Cordon killed a process of the cell; run it again");
    return CORDON_ESYSTEM;
}

static int mount_error(const struct event_failed *failed, const struct plan_source *plan, cordon_error *err)
{
    char field[48];
    snprintf(field, sizeof field, "/mounts/%u", failed->detail);
    const char *destination = failed->detail < plan->mount_count ? plan->mounts[failed->detail].destination : "?";
    error_field(err, field, "cannot mount at %s: %s", destination, strerror(failed->error));
    if (failed->error == EINVAL)
        return error_hint(err, "its file system does not support idmapped mounts; copy the data in with files instead");
    if (failed->error == ESTALE)
        return error_hint(err, "the source was replaced while the request was made; try again");
    return CORDON_EINVAL;
}

static int files_error(const struct event_failed *failed, const struct plan_source *plan, cordon_error *err)
{
    const char *path = failed->detail < plan->file_count ? plan->files[failed->detail].path : "the program's files";
    switch (failed->error) {
    case ENOSPC:
        error_field(err, "/limits/disk_bytes", "the program's own files do not fit: %s", path);
        return error_hint(err, "raise limits.disk_bytes or limits.inodes");
    case ENOMEM:
        error_field(err, "/limits/memory_bytes", "the program's own files do not fit into its memory");
        return error_hint(err, "raise limits.memory_bytes");
    case EFBIG:
        error_field(err, "/limits/file_bytes", "%s is larger than file_bytes", path);
        return error_hint(err, "raise limits.file_bytes");
    case ENOSYS:
        error_sys(err, ENOSYS, "kernel", "cannot write the program's files safely: openat2 is missing");
        return error_hint(err, "use Linux 5.12 or newer, outside a filter that forbids openat2");
    default:
        return error_field(err, "/files", "cannot write %s: %s", path, strerror(failed->error));
    }
}

static int exec_error(const struct event_failed *failed, const struct plan_source *plan, cordon_error *err)
{
    if (failed->error == ENOENT || failed->error == ENOTDIR)
        return error_set(err, CORDON_ENOTFOUND, "exec", "%s is not in the environment", plan->argv[0]);
    if (failed->error == E2BIG)
        return error_field(err, "/args", "arguments and environment together are too large for the kernel");
    return error_set(err, CORDON_EINVAL, "exec", "cannot start %s: %s", plan->argv[0], strerror(failed->error));
}

int exchange_error(const struct exchange *exchange, const struct plan_source *plan, cordon_error *err)
{
    const struct event_failed *failed = &exchange->failed;
    if (exchange->state == EXCHANGE_GONE && !exchange->started && engine_is_alive(exchange->engine)) {
        error_sys(err, EMFILE, "warden", "the warden could not take the order");
        return error_hint(err, "raise the limit of open files (ulimit -n)");
    }
    if (exchange->state == EXCHANGE_GONE) {
        error_set(err, CORDON_EGONE, "warden", "the warden ended while the program ran; its cells ended with it");
        return error_hint(err, "run it again; if the warden was not killed by hand, this is a defect");
    }
    bool handles_request =
        failed->step == STEP_REQUEST_MOUNT || failed->step == STEP_FILES || failed->step == STEP_EXEC;
    bool no_openat2 = failed->step == STEP_FILES && failed->error == ENOSYS;
    if (handles_request && !no_openat2 && !is_the_requests(failed))
        return own_error(failed, err);
    switch (failed->step) {
    case STEP_REQUEST_MOUNT:
        return mount_error(failed, plan, err);
    case STEP_FILES:
        return files_error(failed, plan, err);
    case STEP_EXEC:
        return exec_error(failed, plan, err);
    }
    if (failed->control == CONTROL_NONE)
        return error_sys(err, failed->error, "cell", "cannot make the cell: %s", failed->text);
    const char *name = control_name((enum control)failed->control);
    error_sys(err, failed->error, name, "control %s cannot be enforced: %s", name, failed->text);
    if (err) {
        err->code = CORDON_EUNENFORCEABLE;
        error_hint(err, "%s", control_fix((enum control)failed->control));
    }
    return CORDON_EUNENFORCEABLE;
}
