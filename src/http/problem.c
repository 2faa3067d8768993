/* Makes problem documents. */
#include "http/problem.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "output/utf8.h"

static const char *title_of(int status)
{
    static const struct {
        int status;
        const char *title;
    } rows[] = {{400, "Bad Request"},
                {401, "Unauthorized"},
                {403, "Forbidden"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {406, "Not Acceptable"},
                {409, "Conflict"},
                {413, "Content Too Large"},
                {415, "Unsupported Media Type"},
                {421, "Misdirected Request"},
                {422, "Unprocessable Content"},
                {429, "Too Many Requests"},
                {500, "Internal Server Error"},
                {501, "Not Implemented"},
                {503, "Service Unavailable"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return rows[i].title;
    return "Error";
}

static void answer(struct http_call *call, int status, json_t *problem)
{
    auto_free char *text = json_dumps(problem, JSON_COMPACT);
    json_decref(problem);
    if (status == 503)
        http_add_header(call, "Retry-After", "5");
    http_answer(call, status, "application/problem+json", text ? text : "{}", text ? strlen(text) : 2);
}

/* A word of the client's that is quoted need not be UTF-8, nor end with a whole character. */
static json_t *text_json(const char *text)
{
    size_t length;
    auto_free char *repaired = utf8_repair(text, strlen(text), &length);
    return repaired ? json_stringn(repaired, length) : json_null();
}

static json_t *problem_new(int status, const char *code, const char *detail)
{
    return json_pack("{s:s, s:s, s:i, s:s, s:o}", "type", "about:blank", "title", title_of(status), "status", status,
                     "code", code, "detail", text_json(detail));
}

void problem_answer(struct http_call *call, int status, const char *code, const char *format, ...)
{
    char detail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    answer(call, status, problem_new(status, code, detail));
}

static json_t *problem_of(int status, const char *code, const cordon_error *err)
{
    json_t *problem = problem_new(status, code, err->text);
    if (*err->field)
        json_object_set_new(problem, "field", text_json(err->field));
    if (*err->step)
        json_object_set_new(problem, "step", text_json(err->step));
    if (err->sys_errno)
        json_object_set_new(problem, "errno", json_integer(err->sys_errno));
    if (*err->hint)
        json_object_set_new(problem, "hint", text_json(err->hint));
    return problem;
}

void problem_error(struct http_call *call, int status, const char *code, const cordon_error *err)
{
    answer(call, status, problem_of(status, code, err));
}

void problem_budget(struct http_call *call, int status, const char *budget, const cordon_error *err)
{
    json_t *problem = problem_of(status, "budget", err);
    json_object_set_new(problem, "budget", json_string(budget));
    answer(call, status, problem);
}

void problem_from(struct http_call *call, const cordon_error *err)
{
    static const struct {
        int code, status;
        const char *word;
    } rows[] = {{CORDON_EINVAL, 400, "bad_request"},    {CORDON_EUNENFORCEABLE, 422, "unenforceable"},
                {CORDON_ENOTFOUND, 404, "not_found"},   {CORDON_ESTATE, 409, "conflict"},
                {CORDON_EGONE, 503, "engine_gone"},     {CORDON_ENOMEM, 503, "out_of_memory"},
                {CORDON_ESYSTEM, 500, "internal_error"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].code == err->code) {
            problem_error(call, rows[i].status, rows[i].word, err);
            return;
        }
    problem_error(call, 500, "internal_error", err);
}
