/* Fills a store for tests/e2e and for measuring: `store_fill DIR none|hash|full` reads a line of JSON per run, {"key",
 * "request", "result"} (without a result it is only accepted); `store_fill DIR KEEP N` copies the one line it reads N
 * times, under ids of their own, and tells how long that took. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/account.h"
#include "store/store.h"

static int fail(const cordon_error *err)
{
    fprintf(stderr, "%s (%s)\n", err->text, err->hint);
    return 1;
}

static int give(struct store *store, json_t *line, cordon_error *err)
{
    json_t *result = json_object_get(line, "result");
    auto_free char *request = json_dumps(json_object_get(line, "request"), JSON_COMPACT);
    const json_t *usage = json_object_get(result, "usage");
    const struct account account = {
        .cpu_us = (uint64_t)(1000 * (json_number_value(json_object_get(usage, "cpu_user_ms")) +
                                     json_number_value(json_object_get(usage, "cpu_system_ms"))))};
    const char *id = json_string_value(json_object_get(result ? result : line, "id"));
    struct store_run run = {id, json_string_value(json_object_get(line, "key")), request, result, &account};
    return result ? store_finish(store, &run, err) : store_accept(store, &run, err);
}

static int give_many(struct store *store, json_t *line, unsigned long count, cordon_error *err)
{
    json_t *result = json_object_get(line, "result");
    uint64_t begin = clock_us(), longest = 0;
    int code = 0;
    for (unsigned long i = 0; i < count && code == 0; i++) {
        char id[33];
        uint64_t before = clock_us();
        snprintf(id, sizeof id, "%032lx", i);
        json_object_set_new(result, "id", json_string(id));
        code = give(store, line, err);
        if (clock_us() - before > longest)
            longest = clock_us() - before;
    }
    double given = (double)(clock_us() - begin);
    if (code == 0)
        code = store_flush(store, err);
    printf("%lu runs: %.1f us each to finish (at most %.1f ms), %.2f s until on the disk\n", count,
           given / (double)count, (double)longest / 1000, (double)(clock_us() - begin) / 1e6);
    return code;
}

int main(int argc, char **argv)
{
    static const char *const keeps[] = {"none", "hash", "full"};
    cordon_error err = {0};
    if (argc < 3)
        return 2;
    struct store_options options = {.data_dir = argv[1]};
    for (int i = 0; i < 3; i++)
        if (!strcmp(argv[2], keeps[i]))
            options.keep = (enum store_keep)i;
    struct store *store;
    if (store_open(&options, &store, &err) < 0)
        return fail(&err);
    auto_free char *text = NULL;
    size_t room = 0;
    int code = 0;
    while (code == 0 && getline(&text, &room, stdin) > 0) {
        json_t *line = json_loads(text, JSON_ALLOW_NUL, NULL);
        code = argc > 3 ? give_many(store, line, strtoul(argv[3], NULL, 10), &err) : give(store, line, &err);
        json_decref(line);
    }
    store_close(store);
    return code < 0 ? fail(&err) : 0;
}
