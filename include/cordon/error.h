/* Errors, the same everywhere: C API, command line, child pipe, HTTP.
 *
 * Every call that can fail takes a caller-owned `cordon_error *` as its last parameter (NULL is allowed), returns 0 or
 * a negative CORDON_E… code, and sets its outputs only on success. NULL for an argument that a call needs is
 * CORDON_EINVAL; a getter of a result that is NULL gives nothing. */
#ifndef CORDON_ERROR_H
#define CORDON_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CORDON_OK = 0,
    CORDON_EINVAL = -1,         /* bad input; `field` names it */
    CORDON_EUNENFORCEABLE = -2, /* a required control cannot be had here; `step` names it */
    CORDON_ESYSTEM = -3,        /* a system call failed; `sys_errno` tells */
    CORDON_ENOMEM = -4,
    CORDON_EGONE = -5,     /* the warden ended, or the engine is closed */
    CORDON_ENOTFOUND = -6, /* unknown language, missing interpreter */
    CORDON_ESTATE = -7     /* call in the wrong order */
};

typedef struct cordon_error {
    int code;
    int sys_errno;   /* 0 when no system call was involved */
    char step[32];   /* what was being done, or the control's name */
    char field[128]; /* JSON pointer of the bad request field, or "" */
    char text[384];  /* one line, no trailing full stop */
    char hint[384];  /* what to do about it, or "" */
} cordon_error;

#ifdef __cplusplus
}
#endif
#endif
