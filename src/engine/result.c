/* Making, reading and freeing results. */
#include "engine/result.h"
#include "engine/result_files.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/hex.h"

static const struct {
    const char *name;
    int process_exit; /* -1: the program's own code; -2: 128 + signal */
} statuses[] = {
    [CORDON_STATUS_OK] = {"ok", -1},
    [CORDON_STATUS_NONZERO_EXIT] = {"nonzero_exit", -1},
    [CORDON_STATUS_SIGNALED] = {"signaled", -2},
    [CORDON_STATUS_WALL_LIMIT] = {"wall_limit", 124},
    [CORDON_STATUS_CPU_LIMIT] = {"cpu_limit", 124},
    [CORDON_STATUS_MEMORY_LIMIT] = {"memory_limit", 137},
    [CORDON_STATUS_PROCESS_LIMIT] = {"process_limit", -1},
    [CORDON_STATUS_DISK_LIMIT] = {"disk_limit", -1},
    [CORDON_STATUS_OUTPUT_LIMIT] = {"output_limit", 124},
    [CORDON_STATUS_DENIED] = {"denied", 126},
    [CORDON_STATUS_COMPILE_ERROR] = {"compile_error", 1},
    [CORDON_STATUS_REJECTED] = {"rejected", 2},
    [CORDON_STATUS_CANCELLED] = {"cancelled", 130},
    [CORDON_STATUS_INTERNAL_ERROR] = {"internal_error", 125},
};

static void set_created_at(struct cordon_result *result)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t used = strftime(result->created_at, sizeof result->created_at, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(result->created_at + used, sizeof result->created_at - used, ".%03ldZ", now.tv_nsec / 1000000);
}

struct cordon_result *result_new(struct cordon_engine *engine, const struct prepared *prepared,
                                 const cordon_run_options *options)
{
    struct cordon_result *result = calloc(1, sizeof *result);
    uint8_t random[16] = {0};
    if (!result || !(result->language = strdup(prepared->manifest->id)) ||
        (!options->id && getrandom(random, sizeof random, 0) != sizeof random)) {
        free(result ? result->language : NULL);
        free(result);
        return NULL;
    }
    hex_text(random, sizeof random, result->id);
    if (options->id)
        snprintf(result->id, sizeof result->id, "%s", options->id);
    result->queue_us = options->queue_us;
    result->engine = engine_ref(engine);
    result->manifest = prepared->manifest;
    const struct bytes *source = prepared_source(prepared);
    sha256_hex(source->data ? source->data : "", source->length, result->code_sha256);
    set_created_at(result);
    result->base64_output = prepared->request->base64_output;
    return result;
}

struct cordon_result *result_of_nothing(struct cordon_engine *engine, const char *language)
{
    struct cordon_result *result = calloc(1, sizeof *result);
    uint8_t random[16] = {0};
    if (!result || !(result->language = strdup(language)) || getrandom(random, sizeof random, 0) != sizeof random) {
        free(result ? result->language : NULL);
        free(result);
        return NULL;
    }
    hex_text(random, sizeof random, result->id);
    result->engine = engine_ref(engine);
    result->program.status = CORDON_STATUS_CANCELLED;
    result->program.exit_code = -1;
    set_created_at(result);
    return result;
}

cordon_status cordon_result_status(const cordon_result *result)
{
    return result ? result->program.status : CORDON_STATUS_INTERNAL_ERROR;
}

const char *cordon_status_name(cordon_status status)
{
    return (unsigned)status < sizeof statuses / sizeof *statuses ? statuses[status].name : "unknown";
}

bool cordon_result_success(const cordon_result *result)
{
    if (!result)
        return false;
    return result->tests ? result->is_judged_good : result->program.status == CORDON_STATUS_OK;
}

int cordon_result_exit_code(const cordon_result *result)
{
    return result ? result->program.exit_code : -1;
}

int cordon_result_signal(const cordon_result *result)
{
    return result ? result->program.signal : 0;
}

int cordon_result_process_exit_code(const cordon_result *result)
{
    int code = statuses[cordon_result_status(result)].process_exit;
    if (code >= 0)
        return code;
    return result->program.signal ? 128 + result->program.signal : result->program.exit_code;
}

static const char *output(const cordon_result *result, int index, size_t *length)
{
    if (length)
        *length = result ? result->program.out_length[index] : 0;
    return result && result->program.out[index] ? result->program.out[index] : "";
}

const char *cordon_result_stdout(const cordon_result *result, size_t *length)
{
    return output(result, 0, length);
}

const char *cordon_result_stderr(const cordon_result *result, size_t *length)
{
    return output(result, 1, length);
}

bool cordon_result_cut(const cordon_result *result, int stream, size_t *offset)
{
    if (!result || !offset || (stream != 1 && stream != 2) || !result->program.truncated[stream - 1])
        return false;
    *offset = result->program.cut_at[stream - 1];
    return true;
}

const char *cordon_result_reason(const cordon_result *result)
{
    return result ? result->reason : NULL;
}

uint64_t cordon_result_wall_us(const cordon_result *result)
{
    return result ? result->program.usage.wall_us : 0;
}

int cordon_result_add_redaction(cordon_result *result, const char *rule, const char *where, uint64_t count)
{
    if (!result || !rule || !where)
        return CORDON_EINVAL;
    struct result_redaction row = {strdup(rule), strdup(where), count};
    struct result_redaction *rows =
        reallocarray(result->redactions, result->redaction_count + 1, sizeof *result->redactions);
    if (rows)
        result->redactions = rows;
    if (!rows || !row.rule || !row.where) {
        free(row.rule);
        free(row.where);
        return CORDON_ENOMEM;
    }
    rows[result->redaction_count++] = row;
    return 0;
}

const char *result_id(const cordon_result *result)
{
    return result->id;
}

const struct account *result_account(const cordon_result *result)
{
    return &result->account;
}

void cordon_result_free(cordon_result *result)
{
    if (!result)
        return;
    outcome_free(&result->program);
    if (result->compile)
        outcome_free(result->compile);
    free(result->compile);
    result_files_free(result);
    for (size_t i = 0; i < result->redaction_count; i++) {
        free(result->redactions[i].rule);
        free(result->redactions[i].where);
    }
    free(result->redactions);
    explanation_free(&result->error);
    free(result->language);
    if (result->engine)
        engine_unref(result->engine);
    json_decref(result->tests);
    free(result->value);
    free(result->reason);
    free(result->json);
    free(result);
}
