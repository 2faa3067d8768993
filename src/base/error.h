/* Filling a cordon_error. Each returns the code, so that `return error_set(…)` reads as one step. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <cordon/error.h>

int error_set(cordon_error *err, int code, const char *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Bad input in the request field with this JSON pointer. */
int error_field(cordon_error *err, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A system call failed: appends the text of `sys_errno`. */
int error_sys(cordon_error *err, int sys_errno, const char *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int error_nomem(cordon_error *err);
/* A caller of the library gave NULL where an argument is needed. */
int error_null(cordon_error *err, const char *argument);
#define REQUIRE(argument, err)                                                                                         \
    do {                                                                                                               \
        if (!(argument))                                                                                               \
            return error_null(err, #argument);                                                                         \
    } while (0)
/* Adds the hint to an error that was just set; returns its code. */
int error_hint(cordon_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
