/* Owns the wording of errors: one line, what failed, then why. Called on the trusted side only. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __attribute__((format(printf, 6, 0))) int fill(cordon_error *err, int code, int sys_errno, const char *step,
                                                      const char *field, const char *format, va_list args)
{
    if (!err)
        return code;
    memset(err, 0, sizeof *err);
    err->code = code;
    err->sys_errno = sys_errno;
    snprintf(err->step, sizeof err->step, "%s", step);
    snprintf(err->field, sizeof err->field, "%s", field);
    vsnprintf(err->text, sizeof err->text, format, args);
    if (sys_errno) {
        size_t used = strlen(err->text);
        snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(sys_errno));
    }
    return code;
}

int error_set(cordon_error *err, int code, const char *step, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, 0, step, "", format, args);
    va_end(args);
    return code;
}

int error_field(cordon_error *err, const char *field, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, CORDON_EINVAL, 0, "request", field, format, args);
    va_end(args);
    return CORDON_EINVAL;
}

int error_sys(cordon_error *err, int sys_errno, const char *step, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, CORDON_ESYSTEM, sys_errno, step, "", format, args);
    va_end(args);
    return CORDON_ESYSTEM;
}

int error_nomem(cordon_error *err)
{
    return error_set(err, CORDON_ENOMEM, "memory", "out of memory");
}

int error_hint(cordon_error *err, const char *format, ...)
{
    if (!err)
        return CORDON_EINVAL;
    va_list args;
    va_start(args, format);
    vsnprintf(err->hint, sizeof err->hint, format, args);
    va_end(args);
    return err->code;
}

int error_null(cordon_error *err, const char *argument)
{
    return error_set(err, CORDON_EINVAL, "arguments", "%s is NULL", argument);
}
