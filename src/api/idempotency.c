/* Owns the list of remembered keys. */
#include "api/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"

#define KEEP_US  (UINT64_C(600) * 1000000)
#define KEEP_MAX 4096

struct remembered {
    struct remembered *next;
    uint8_t who[SHA256_BYTES]; /* the caller's key and its word */
    uint8_t what[SHA256_BYTES];
    char id[ID_BYTES + 1];
    uint64_t at_us;
};

static bool hash_call(const struct call *call, uint8_t who[SHA256_BYTES], uint8_t what[SHA256_BYTES])
{
    const char *word = http_header(call->http, "Idempotency-Key");
    struct sha256 hash;
    size_t length;
    if (!word || !*word)
        return false;
    sha256_begin(&hash);
    sha256_add(&hash, call->caller.key.id, sizeof call->caller.key.id);
    sha256_add(&hash, word, strlen(word));
    sha256_end(&hash, who);
    const char *body = http_body(call->http, &length);
    sha256_begin(&hash);
    sha256_add(&hash, http_path(call->http), strlen(http_path(call->http)) + 1);
    sha256_add(&hash, body, length);
    sha256_end(&hash, what);
    return true;
}

enum remembered_as idempotency_find(struct call *call, char id[ID_BYTES + 1])
{
    uint8_t who[SHA256_BYTES], what[SHA256_BYTES];
    if (!hash_call(call, who, what))
        return REMEMBERED_NOT;
    for (struct remembered *row = call->api->remembered; row; row = row->next) {
        if (memcmp(row->who, who, sizeof who) != 0)
            continue;
        if (memcmp(row->what, what, sizeof what) != 0) {
            problem_answer(call->http, 409, "idempotency_conflict",
                           "this Idempotency-Key was used for another request before");
            return REMEMBERED_OTHER;
        }
        memcpy(id, row->id, sizeof row->id);
        return REMEMBERED_SAME;
    }
    return REMEMBERED_NOT;
}

static void forget(struct api *api, struct remembered **link)
{
    struct remembered *row = *link;
    *link = row->next;
    api->remembered_count--;
    free(row);
}

bool idempotency_remember(struct call *call, const char *id)
{
    struct remembered *row = calloc(1, sizeof *row);
    struct api *api = call->api;
    if (!row || !hash_call(call, row->who, row->what)) {
        free(row);
        return false;
    }
    struct remembered **last = &api->remembered;
    while (api->remembered_count >= KEEP_MAX && (*last)->next)
        last = &(*last)->next;
    if (api->remembered_count >= KEEP_MAX)
        forget(api, last);
    snprintf(row->id, sizeof row->id, "%s", id);
    row->at_us = clock_us();
    row->next = api->remembered;
    api->remembered = row;
    api->remembered_count++;
    return true;
}

void idempotency_forget(struct api *api, const char *id)
{
    for (struct remembered **link = &api->remembered; *link; link = &(*link)->next)
        if (!strcmp((*link)->id, id)) {
            forget(api, link);
            return;
        }
}

void idempotency_tick(struct api *api)
{
    uint64_t now = clock_us();
    for (struct remembered **link = &api->remembered; *link;)
        if (now - (*link)->at_us > KEEP_US)
            forget(api, link);
        else
            link = &(*link)->next;
}

void idempotency_free(struct api *api)
{
    while (api->remembered)
        forget(api, &api->remembered);
}
