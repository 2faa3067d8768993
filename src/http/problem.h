/* Errors as RFC 9457 problem documents. */
#ifndef HTTP_PROBLEM_H
#define HTTP_PROBLEM_H

#include <cordon/error.h>

#include "http/server.h"

/* `code` is the machine's word for it ("not_found"). */
void problem_answer(struct http_call *call, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* With everything that the error has: the field's pointer, the step, errno and the hint. */
void problem_error(struct http_call *call, int status, const char *code, const cordon_error *err);
/* The same with code "budget" and the name of the budget that has no room. */
void problem_budget(struct http_call *call, int status, const char *budget, const cordon_error *err);
/* The status and code that the kind of error has by itself. */
void problem_from(struct http_call *call, const cordon_error *err);

#endif
