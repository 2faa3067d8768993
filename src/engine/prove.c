/* Owns the proofs that runs are possible: a cell of the isolation level, and a language's own example. Called by the
 * daemon at its start; what is proven here is what a request of the same kind would meet. */
#include <cordon/run.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/language_proofs.h"
#include "plan/request.h"

/* How soon a proof that is given up ends. */
#define WATCH_MS 20

static int make_request(const struct manifest *manifest, const struct manifest_example *example, uint32_t optional,
                        cordon_request **request, cordon_error *err)
{
    *request = cordon_request_new();
    if (!*request)
        return error_nomem(err);
    (*request)->optional = optional;
    int code = cordon_request_set_language(*request, manifest->id, err);
    if (code == 0)
        code = cordon_request_set_code(*request, example->code, strlen(example->code), err);
    if (code == 0 && example->input)
        code = cordon_request_set_stdin(*request, example->input, strlen(example->input), err);
    /* A pool would keep memory for a language that nobody has asked for. */
    if (code == 0)
        code = cordon_request_set_warm(*request, false, err);
    return code == 0 ? cordon_request_set_profile(*request, "heavy", err) : code;
}

static int wait_for(cordon_run *run, const struct proof_watch *watch, cordon_result **result, cordon_error *err)
{
    int code;
    bool is_cancelled = false;
    while ((code = cordon_run_dispatch(run, err)) == 0) {
        struct pollfd ready = {.fd = cordon_run_fd(run), .events = POLLIN};
        poll(&ready, 1, WATCH_MS);
        if (!is_cancelled && !watch->go_on(watch->context)) {
            is_cancelled = true;
            cordon_run_cancel(run);
        }
    }
    return code < 0 ? code : cordon_run_wait(run, result, err);
}

/* The last line, which is where interpreters and loaders say what is wrong. */
static const char *last_line(const char *text, char *line, size_t size)
{
    size_t end = strlen(text);
    while (end && strchr("\r\n\t ", text[end - 1]))
        end--;
    size_t start = end;
    while (start && text[start - 1] != '\n')
        start--;
    snprintf(line, size, "%.*s", (int)(end - start), text + start);
    return line;
}

static int judge(const struct manifest *manifest, const struct manifest_example *example, const cordon_result *result,
                 cordon_error *err)
{
    char line[160];
    const char *reason = cordon_result_reason(result), *printed = cordon_result_stdout(result, NULL);
    if (cordon_result_status(result) != CORDON_STATUS_OK) {
        error_set(err, CORDON_ESTATE, "language", "%s: %s: %s", manifest->id,
                  reason ? reason : cordon_status_name(cordon_result_status(result)),
                  last_line(cordon_result_stderr(result, NULL), line, sizeof line));
        return error_hint(err, "try `cordon run -l %s` with a program of one line, as the user that serves",
                          manifest->id);
    }
    if (strcmp(printed, example->output ? example->output : "") == 0)
        return 0;
    return error_set(err, CORDON_ESTATE, "language", "%s: its example '%s' printed '%s'", manifest->id, example->name,
                     last_line(printed, line, sizeof line));
}

int engine_prove_language(struct cordon_engine *engine, const struct manifest *manifest, uint32_t optional,
                          const struct proof_watch *watch, cordon_error *err)
{
    const struct manifest_notes *notes;
    cordon_request *request = NULL;
    cordon_result *result = NULL;
    cordon_run *run = NULL;
    int code = manifest_notes(manifest, &notes, err);
    if (code < 0 || !notes->examples_count)
        return code;
    code = make_request(manifest, &notes->examples[0], optional, &request, err);
    if (code == 0)
        code = cordon_run_start(engine, request, NULL, &run, err);
    if (code == 0)
        code = wait_for(run, watch, &result, err);
    if (code == 0)
        code = judge(manifest, &notes->examples[0], result, err);
    if (code == 0)
        proofs_keep_success(engine, manifest);
    cordon_result_free(result);
    cordon_run_free(run);
    cordon_request_free(request);
    return code;
}
