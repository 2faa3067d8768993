/* The hooks of cordon-service for `cordon run`: output is sanitized if that was asked for, and the run recorded in the
 * data directory if there is one. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/run_hooks.h"
#include "engine/result_json.h"
#include "plan/request_write.h"
#include "service/sanitizer.h"
#include "store/store.h"

static struct sanitizer sanitizer;

bool run_needs_service(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return false; /* it is this one */
}

static const char *data_dir_of(const struct run_flags *flags)
{
    const char *usual = getenv("CORDON_DATA_DIR");
    return flags->data_dir ? flags->data_dir : usual && *usual ? usual : NULL;
}

int run_hook_begin(const struct run_flags *flags, cordon_run_options *options, cordon_error *err)
{
    int code = sanitizer_open(&sanitizer, flags->request, SANITIZE_NONE, err);
    options->filter = sanitizer_filter(&sanitizer);
    return code;
}

static int record(const struct run_flags *flags, const char *data_dir, cordon_result *result, cordon_error *err)
{
    struct store *store = NULL;
    struct store_options options = {.data_dir = data_dir, .keep = STORE_KEEP_FULL};
    int code = store_open(&options, &store, err);
    if (code < 0)
        return code;
    json_t *asked = request_to_object(flags->request);
    code = asked ? sanitizer_clean(flags->request, &asked, err) : error_nomem(err);
    auto_free char *request = code == 0 ? json_dumps(asked, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_t *object = result_object(result);
    struct store_run run = {result_id(result), "", request, object, result_account(result)};
    if (code == 0)
        code = request && object ? store_finish(store, &run, err) : error_nomem(err);
    if (code == 0)
        code = store_flush(store, err);
    store_close(store);
    json_decref(object);
    json_decref(asked);
    return code;
}

int run_hook_end(const struct run_flags *flags, cordon_result *result, cordon_error *err)
{
    sanitizer_tell(&sanitizer, result);
    const char *data_dir = data_dir_of(flags);
    int code = data_dir ? record(flags, data_dir, result, err) : 0;
    sanitizer_close(&sanitizer);
    return code;
}
