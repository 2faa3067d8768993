/* Cordon itself as a contestant: the public API in this process, as a service would use it. Called by the lanes. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/bench/bench.h"
#include "cli/report.h"

#define FILL_MS 60000

/* The warden as an executable of its own, as for every other program that links the library: other engines may be open
 * and threads may have been. */
int own_open(struct contestant *contestant, const struct scratch *scratch, cordon_error *err)
{
    char compiled[sizeof scratch->path + 16];
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    snprintf(compiled, sizeof compiled, "%s/compiled", scratch->path);
    options.warm = contestant->warm;
    options.cache_dir = compiled;
    return cordon_engine_open(&options, &contestant->engine, err);
}

int own_lane(struct lane *lane, cordon_error *err)
{
    const struct workload *workload = lane->workload;
    cordon_request *request = cordon_request_new();
    if (!request)
        return error_nomem(err);
    int code = cordon_request_set_language(request, workload->language, err);
    if (code == 0)
        code = cordon_request_set_code(request, workload->code, strlen(workload->code), err);
    if (code == 0 && lane->contestant->no_cgroup)
        code = cordon_request_add_optional(request, "cgroup", err);
    if (code < 0)
        cordon_request_free(request);
    else
        lane->request = request;
    return code;
}

bool own_works(struct contestant *contestant, const struct workload *workload, const struct scratch *scratch,
               char why[BENCH_REASON_SIZE])
{
    struct lane lane;
    struct sample sample;
    cordon_error err = {0};
    for (int turn = 0; turn < 2; turn++) {
        cordon_result *result = NULL;
        if (lane_open(&lane, contestant, workload, scratch, &err) < 0)
            break;
        int code = cordon_execute(contestant->engine, lane.request, NULL, &result, &err);
        cordon_result_free(result);
        if (code == CORDON_EUNENFORCEABLE && !strcmp(err.step, "cgroup") && !contestant->no_cgroup) {
            lane_close(&lane);
            contestant->no_cgroup = true;
            continue;
        }
        code = own_fill(&lane, 1, &err);
        if (code == 0)
            own_run(&lane, &sample);
        lane_close(&lane);
        snprintf(why, BENCH_REASON_SIZE, "%.230s", code < 0 ? err.text : sample.why);
        return code == 0 && sample.ok;
    }
    snprintf(why, BENCH_REASON_SIZE, "%.230s", err.text);
    return false;
}

int own_fill(const struct lane *lane, unsigned cells, cordon_error *err)
{
    if (!lane->contestant->warm)
        return 0;
    int ready = cordon_engine_warm(lane->contestant->engine, lane->request, cells, FILL_MS, err);
    if (ready == 0)
        return error_set(err, CORDON_ESTATE, "bench", "no waiting cell can serve it");
    return ready < 0 ? ready : 0;
}

/* What the result says of its own duration and of the cell; after the clock was stopped. */
static void read_account(cordon_result *result, struct sample *sample)
{
    const char *text = cordon_result_json(result);
    auto_json json_t *json = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *timing = json_object_get(json, "timing"), *enforced = json_object_get(json, "enforced");
    const char *name;
    json_t *part;
    json_object_foreach((json_t *)timing, name, part) sample->timing_us += (uint64_t)json_integer_value(part);
    sample->warm = json_is_true(json_object_get(enforced, "warm"));
}

static void judge(const struct workload *workload, const cordon_result *result, struct sample *sample)
{
    size_t length;
    const char *text = cordon_result_stdout(result, &length);
    cordon_status status = cordon_result_status(result);
    bool right = length == strlen(workload->output) && !memcmp(text, workload->output, length);
    sample->ok = status == CORDON_STATUS_OK && right;
    if (sample->ok)
        return;
    const char *reason = cordon_result_reason(result);
    if (status != CORDON_STATUS_OK)
        snprintf(sample->why, sizeof sample->why, "%s: %s", cordon_status_name(status), reason ? reason : "no reason");
    else
        snprintf(sample->why, sizeof sample->why, "printed %zu bytes that are not the expected ones", length);
}

void own_run(struct lane *lane, struct sample *sample)
{
    cordon_error err = {0};
    cordon_result *result = NULL;
    *sample = (struct sample){0};
    uint64_t begin = clock_us();
    int code = cordon_execute(lane->contestant->engine, lane->request, NULL, &result, &err);
    sample->wall_us = clock_us() - begin;
    if (code < 0) {
        snprintf(sample->why, sizeof sample->why, "%.230s", err.text);
        return;
    }
    judge(lane->workload, result, sample);
    if (lane->account)
        read_account(result, sample);
    cordon_result_free(result);
}
