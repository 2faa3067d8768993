/* The compile cache through the library: whose programs are used for whom. */
#include "api.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool was_cached(cordon_engine *engine, const cordon_request *request, const cordon_run_options *options)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    int code = cordon_execute(engine, request, options, &result, &err);
    CHECK(code == 0, "%s: %s", err.step, err.text);
    CHECK(!strcmp(cordon_result_stdout(result, NULL), "7\n"), "%s", cordon_result_json(result));
    const char *json = cordon_result_json(result);
    CHECK(strstr(json, "\"cached\":true") || strstr(json, "\"cached\":false"), "%s", json);
    bool cached = strstr(json, "\"cached\":true") != NULL;
    cordon_result_free(result);
    return cached;
}

static bool tenant_was_cached(const cordon_request *request, const char *tenant, size_t bytes)
{
    engine_options.tenant = tenant;
    engine_options.cache_bytes = bytes;
    cordon_engine *engine = open_engine();
    bool cached = was_cached(engine, request, NULL);
    cordon_engine_close(engine);
    return cached;
}

static void *compile_often(void *context)
{
    cordon_request *request = new_request("c", "#include <stdio.h>\nint main(void) { puts(\"7\"); }");
    for (int i = 0; i < 5; i++)
        was_cached(context, request, NULL);
    cordon_request_free(request);
    return NULL;
}

/* What one tenant compiled is not used for another; nothing is used where the caller wants none. */
void test_cache(void)
{
    char directory[] = "/tmp/cordon-api-XXXXXX", command[64];
    CHECK(mkdtemp(directory), "no directory");
    engine_options.cache_dir = directory;
    cordon_request *request = new_request("c", "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 7); }");
    CHECK(!tenant_was_cached(request, "one", 0), "the first time");
    CHECK(tenant_was_cached(request, "one", 0), "the second time");
    CHECK(!tenant_was_cached(request, "two", 0), "another tenant");
    CHECK(!tenant_was_cached(request, NULL, 0), "no tenant");
    CHECK(!tenant_was_cached(request, "", 0), "a tenant without a name");
    CHECK(tenant_was_cached(request, NULL, 0), "no tenant, again");
    CHECK(!tenant_was_cached(request, "one", SIZE_MAX), "no cache at all");
    CHECK(tenant_was_cached(request, "one", 0), "still there");
    CHECK(!tenant_was_cached(request, "small", 1024), "too large to keep");
    CHECK(!tenant_was_cached(request, "small", 1024), "too large to keep, again");
    engine_options.cache_bytes = 0;
    cordon_engine *engine = open_engine();
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    options.no_cache = 1;
    CHECK(!was_cached(engine, request, NULL), "\"small\" may keep it now");
    CHECK(!was_cached(engine, request, &options), "no cache for this run");
    CHECK(was_cached(engine, request, NULL), "no cache was for that run only");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, compile_often, engine), "no thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cordon_engine_close(engine);
    cordon_request_free(request);
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0, "%s", command);
}
